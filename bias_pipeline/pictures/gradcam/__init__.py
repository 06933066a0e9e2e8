"""Where a captioner looked when it wrote a word."""
