"""Published data sets: LIC, RELIC, ArtEmis, Flickr30k, and pictures of people without captions."""
