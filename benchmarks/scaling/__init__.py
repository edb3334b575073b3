"""A model of larger jobs: the cost of each step is measured, and the model adds the costs up."""
