"""How the job grows: what each piece of its way costs, measured one by one, and a model that adds them up."""
