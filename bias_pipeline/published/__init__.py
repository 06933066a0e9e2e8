"""Published data sets: LIC, RELIC, ArtEmis, Flickr30k, and data sets of people without captions."""
