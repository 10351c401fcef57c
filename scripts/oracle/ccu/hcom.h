#pragma once
extern "C" HcclResult HcomGetCommHandleByGroup(const char* group, HcclComm* comm);
