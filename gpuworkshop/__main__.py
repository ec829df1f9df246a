"""`python -m gpuworkshop` is the same as `gpuworkshop`."""

from gpuworkshop.cli import main

main()
