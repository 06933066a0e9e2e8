"""Finds which part of a picture made a captioner write a word."""
