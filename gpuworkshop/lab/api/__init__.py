"""The API server: objects under the rules of the Kubernetes API, and their HTTP face.

From the inside out: `store` keeps the objects and `changes` what happened to them; `registry` is what may be
done with them (`defaults`, `validation`, `admission`, `deletion`, `patching`); `server` answers requests,
after `authentication` and `rbac`, by `resources`, `watching`, `subresources` and `streams`. `wire` knows the
types, `kinds` which of them are served.
"""
