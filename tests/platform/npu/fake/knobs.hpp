// How a test sets the fake runtime up. A process reads its environment once.
//
//   FAKEACL_DEVICES=8           devices of the machine, at most 16
//   FAKEACL_SOC=Ascend910B1     what aclrtGetSocName says
//   FAKEACL_VERSION=1.16.0      what aclrtGetVersion says
//   FAKEACL_MEMORY=8589934592   bytes that a process can allocate on a device
//   FAKEACL_MACHINE=path        a file that all processes of the machine open: notifies are counted
//                               over all of them. Without it each process counts its own
//   FAKEACL_NOTIFIES=8192       notifies that a device has, at most 8192
//   FAKEACL_IPC=free            keys without lists of processes; with them imports fail with 507899
//               list            the other way round
//               handles         keys of memory are refused with 507899, as on boards whose NPUs
//                               are attached by PCIe; shareable handles are taken
//               none            neither keys nor handles: 207000
//   FAKEACL_IMPORT_FLAGS=0      imports by keys take no flags, as before CANN 8.5
//   FAKEACL_VISIBLE=3           the devices that the process sees, by their numbers on the board,
//                               with commas between them: it counts them from 0. Without it: all
//   FAKEACL_REENABLE=0          access to a peer that is enabled is not enabled again: 507899
//   FAKEACL_P2P=0               devices do not reach each other
//   FAKEACL_REDUCE=local        aclrtReduceAsync wants both operands on the stream's device, as is
//                               documented. Without it: anywhere
//   FAKEACL_ATOMIC=0            reduces are not atomic: shows that tests would notice
//   FAKEACL_MOST_BYTES=4294967296   what one copy or reduce may move
//   FAKEACL_SEED=0              draws the pauses
//   FAKEACL_DELAY_US=0          how long a pause before a task is at most
//   FAKEACL_FAULT=device=2:kind=lost:after=40     and more of them, after commas. Each process
//                               counts what it enqueues. lost: the device, when the task after so
//                               many runs; copy: the copy after so many fails; silent: the record
//                               after so many never happens
//   FAKEACL_REPORT=path         each process that ends appends a line of JSON
//   FAKEACL_VERBOSE=1           refusals, and calls that do nothing, on stderr
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

struct Knobs {
  int devices;
  std::string soc, version, machine, ipc, reduce, fault, report;
  std::vector<int> visible;
  size_t memory, most_bytes;
  int notifies;
  bool peers, atomic, verbose, import_flags, reenable;
  uint64_t seed;
  uint32_t delay_us;
};

const Knobs& knobs();
