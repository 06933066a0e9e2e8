"""Makes reports: tables on the screen, an HTML page, files for a paper."""
