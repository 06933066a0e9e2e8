"""How small a bias can a data set of a given size show?"""
