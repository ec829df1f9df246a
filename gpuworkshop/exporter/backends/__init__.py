"""Where readings come from. `replay` plays a recorded trace; each backend is a `devices.Backend`."""
