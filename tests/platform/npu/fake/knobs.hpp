// How a test sets the fake runtime up. A process reads its environment once.
//
//   FAKEACL_DEVICES=8          devices of the machine
//   FAKEACL_SOC=Ascend910B1    what aclrtGetSocName says
//   FAKEACL_VERSION=1.16.0     what aclrtGetVersion says
//   FAKEACL_MEMORY=8589934592  bytes a process can allocate on a device
//   FAKEACL_MACHINE=path       a file that all processes of the machine open: its notifies are
//   counted together.
//                              Without it each process counts its own
//   FAKEACL_NOTIFIES=8192      notifies a device has (at most 8192)
//   FAKEACL_IPC=free|list|none keys without a list of processes, keys with one, or no keys; what is
//   not
//                              there fails with 507899, keys as a whole with 207000
//   FAKEACL_P2P=0              devices do not reach each other
//   FAKEACL_REDUCE=local       aclrtReduceAsync wants both operands on the stream's device (else:
//   anywhere) FAKEACL_ATOMIC=0           reduces are not atomic: shows that tests would notice
//   FAKEACL_MOST_BYTES=2^32    what one copy or reduce may move
//   FAKEACL_SEED=0, FAKEACL_DELAY_US=0    a drawn pause of at most that long before every task
//   FAKEACL_FAULT=device=2:kind=lost:after=40[,...]   kinds: lost (the device, after so many
//   tasks), copy (the
//                              copy after so many fails), silent (the record after so many never
//                              happens)
//   FAKEACL_REPORT=path        at exit each process appends one line of JSON
//   FAKEACL_VERBOSE=1          refusals and stubs on stderr
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

struct Knobs {
  int devices;
  std::string soc, version, machine, ipc, reduce, fault, report;
  size_t memory, most_bytes;
  int notifies;
  bool peers, atomic, verbose;
  uint64_t seed;
  uint32_t delay_us;
};

const Knobs& knobs();
