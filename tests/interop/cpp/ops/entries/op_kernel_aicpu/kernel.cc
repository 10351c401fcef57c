// There is no kernel to launch.
