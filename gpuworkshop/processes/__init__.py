"""Tools found or fetched, and processes kept running.

`tools` finds kubectl, helm, aws and prometheus. `groups` is the door to everything that runs: it starts
a group of services under a detached `supervisor`, looks at it, restarts one service, ends all. `children`
and `tether` are a single process's life, `state` is what the supervisor writes and everybody reads,
`reaper` finds and ends whatever is left over, `ports` hands out free ports and loopback subnets.
"""
