"""Executors whose servers are rings.

servers      Atlas training servers and Atlas A2: two levels, in HCCL's order for these
superpods    Atlas A3: three levels, the slowest where data is least
superpod_pipelines  Atlas A3: several superpods, whose exchange overlaps with the work inside
concurrent   Atlas A3: half of the data inside servers while the other half is between them
semi         Atlas A3: two marches through one server
inside       the rings of a server
outer_levels        the planes between servers and superpods
places       which slots go together on a plane
"""
