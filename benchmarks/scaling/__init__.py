"""How the job grows: what each step of its way costs, measured one by one, and a model that adds them up."""
