"""Tools for human raters and readers, and pictures in which nobody can tell a person's group."""
