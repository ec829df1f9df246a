"""The kubelets of the lab's simulated nodes: pods as local processes, or as a pause that costs nothing.

`manager.Kubelets` is the door: one kubelet for each Node that says `gpuworkshop.io/simulated=true`. A
kubelet (`kubelet`) has a worker for each of its pods (`pods`), and that has one for each container
(`containers`). Every process of a pod has a shim above it, which ends all that it leaves behind (`spawn`,
`shim`). What an image runs as is a table (`images`); an image that is not in it costs no process.
"""
