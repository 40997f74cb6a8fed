#include "support.h"

#include "tempdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "idem-test."

const char *
tempdir_root(void)
{
    const char *root = getenv("TMPDIR");

    return root && strlen(root) < TEMPDIR_MAX / 2 ? root : "/tmp";
}

static int
remove_one(const char *path, const struct stat *status, int kind,
           struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    remove(path);
    return 0;
}

void
tempdir_remove(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* "idem-test.PID.XXXXXX" of a process that is gone. */
static bool
is_left_over(const char *name)
{
    long pid;

    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
        return false;
    pid = strtol(name + strlen(PREFIX), NULL, 10);
    return pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

static void
sweep(void)
{
    DIR *root = opendir(tempdir_root());
    const struct dirent *entry;
    char path[TEMPDIR_MAX + 256];

    while (root && (entry = readdir(root))) {
        if (!is_left_over(entry->d_name))
            continue;
        snprintf(path, sizeof(path), "%s/%s", tempdir_root(), entry->d_name);
        tempdir_remove(path);
    }
    if (root)
        closedir(root);
}

void
tempdir_open(struct tempdir *dir)
{
    sweep();
    snprintf(dir->path, sizeof(dir->path), "%s/" PREFIX "%d.XXXXXX",
             tempdir_root(), (int)getpid());
    assert_non_null(mkdtemp(dir->path));
    assert_int_equal(chmod(dir->path, 0755), 0);
}

void
tempdir_close(struct tempdir *dir)
{
    if (dir->path[0])
        tempdir_remove(dir->path);
    dir->path[0] = '\0';
}

char *
tempdir_file(const struct tempdir *dir, const char *name, char *path,
             unsigned size)
{
    int n = snprintf(path, size, "%s/%s", dir->path, name);

    assert_true(n > 0 && (unsigned)n < size);
    return path;
}
