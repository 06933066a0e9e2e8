"""How metrics respond to planted behaviours."""
