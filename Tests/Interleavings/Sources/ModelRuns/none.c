#include "ModelRuns.h"
