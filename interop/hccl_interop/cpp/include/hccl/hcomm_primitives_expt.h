#include "../hcomm/hcomm_primitives_expt.h"
