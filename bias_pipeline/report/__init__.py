"""Views of rows: tables on the screen and in files."""
