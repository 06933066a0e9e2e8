"""Finds where a captioner looked when it wrote a word."""
