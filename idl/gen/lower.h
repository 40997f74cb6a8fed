#ifndef LOWER_H
#define LOWER_H

#include "model.h"

/* Change files into what protoc-c can compile as we want it: proto3 optional
 * becomes the one-member oneof that it is on the wire anyway, strings are
 * const, and what C does not need (services, extensions, imports that give
 * options only) is left out. */
void lower_files(const struct model *model);

#endif
