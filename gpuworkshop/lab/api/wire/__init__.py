"""What Kubernetes types look like: their fields, on the wire, in strict decoding, and as OpenAPI."""
