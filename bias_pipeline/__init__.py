"""Does an image captioner amplify societal bias? Every metric of the field on the same inputs."""

__version__ = "0.1.0"
