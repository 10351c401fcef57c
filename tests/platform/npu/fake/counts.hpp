// What a process still holds, and what it did wrong without being refused.
#pragma once

#include <string>

enum class Complaint { LOST_POST, LEFT_POST, EARLY_CLOSE, EARLY_FREE };

// A mistake that hardware lets pass in silence: kept for the report.
void complain(Complaint kind, const std::string& what);

int live_streams();
int live_notifies(bool imported);
int live_blocks(bool imported);
int live_events();

// Have the report written when the process ends.
void report_at_exit();
