#ifndef FILES_H
#define FILES_H

/* Put the text there as a whole: beside it, then renamed over it. */
void file_put(const char *path, const char *text);

#endif
