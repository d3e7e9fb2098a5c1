"""What all processes of the engine share: messages, channels, storage directories and process trees."""
