"""Sets of pictures that differ in a person's group alone: does the caption change with it?"""
