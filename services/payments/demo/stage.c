#include "stage.h"

#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "authority.h"
#include "plan.h"

#define READY_MS 30000
#define WORD_MAX (STAGE_PATH_MAX + 64)

static bool
complain(const struct stage *stage, const char *what)
{
    fprintf(stderr, "demo: %s; the logs are in %s\n", what, stage->folder);
    return false;
}

static void
in_folder(const struct stage *stage, const char *name, char *path, size_t size)
{
    snprintf(path, size, "%s/%s", stage->folder, name);
}

static void
program(const struct stage *stage, const char *name, char *path, size_t size)
{
    snprintf(path, size, "%s/%s", stage->programs, name);
}

static bool
start_provider(struct stage *stage)
{
    char path[WORD_MAX], socket[WORD_MAX], payments[WORD_MAX], log[WORD_MAX];
    char rest[WORD_MAX];
    const char *const words[] = {path, socket, payments, NULL};

    program(stage, "fake_provider", path, sizeof path);
    in_folder(stage, "provider.sock", socket, sizeof socket);
    in_folder(stage, "provider.err", log, sizeof log);
    stage_provider_log(stage, payments, sizeof payments);
    return (process_start(&stage->provider, words, log) &&
            process_wait_line(&stage->provider, "listening on ", rest,
                              sizeof rest, READY_MS)) ||
           complain(stage, "the provider does not start");
}

/* The words of a server; the buffers live in the caller. */
struct server_words {
    char path[WORD_MAX], books[WORD_MAX], provider[WORD_MAX];
    char accounts[16], balance[32];
    const char *words[24];
};

static void
write_words(struct server_words *w, const struct stage *stage)
{
    size_t n = 0;

    program(stage, "payments_server", w->path, sizeof w->path);
    in_folder(stage, "provider.sock", w->provider, sizeof w->provider);
    in_folder(stage, "books.db", w->books, sizeof w->books);
    snprintf(w->accounts, sizeof w->accounts, "%d", PLAN_ACCOUNTS);
    snprintf(w->balance, sizeof w->balance, "%d", PLAN_BALANCE);
    w->words[n++] = w->path;
    w->words[n++] = "--listen";
    w->words[n++] = "tcp://127.0.0.1:0";
    w->words[n++] = "--provider";
    w->words[n++] = w->provider;
    w->words[n++] = "--create-accounts";
    w->words[n++] = w->accounts;
    w->words[n++] = "--balance";
    w->words[n++] = w->balance;
    w->words[n++] = stage->options->servers ? "--postgres" : "--sqlite";
    w->words[n++] =
        stage->options->servers ? stage->databases.conninfo : w->books;
    if (stage->options->servers) {
        w->words[n++] = "--redis";
        w->words[n++] = stage->databases.redis_url;
    }
    if (stage->options->baseline)
        w->words[n++] = "--no-once";
    w->words[n] = NULL;
}

static uint16_t
port_of(const char *address)
{
    const char *colon = strrchr(address, ':');

    return colon ? (uint16_t)atoi(colon + 1) : 0;
}

static bool
start_server(struct stage *stage, unsigned index)
{
    struct server_words words;
    char log[WORD_MAX];

    write_words(&words, stage);
    in_folder(stage, "server.err", log, sizeof log);
    if (!process_start(&stage->servers[index], words.words, log) ||
        !process_wait_line(&stage->servers[index], "listening on ",
                           stage->addresses[index],
                           sizeof stage->addresses[index], READY_MS))
        return complain(stage, "a server does not start");
    proxy_aim(stage->proxy, index, port_of(stage->addresses[index]));
    return true;
}

static bool
find_programs(struct stage *stage)
{
    ssize_t size =
        readlink("/proc/self/exe", stage->programs, sizeof stage->programs - 1);

    if (size <= 0)
        return complain(stage, "the demo does not find its own programs");
    stage->programs[size] = '\0';
    *strrchr(stage->programs, '/') = '\0';
    return true;
}

/* A folder that the database's user may pass through. */
static bool
make_folder(struct stage *stage)
{
    const char *where = getenv("TMPDIR");

    snprintf(stage->folder, sizeof stage->folder, "%.100s/idem-demo-XXXXXX",
             where && *where ? where : "/tmp");
    if (mkdtemp(stage->folder) && chmod(stage->folder, 0711) == 0)
        return true;
    perror("demo: no folder");
    stage->folder[0] = '\0';
    return false;
}

bool
stage_open(struct stage *stage, const struct demo_options *options)
{
    *stage = (struct stage){
        .options = options,
        .n_servers = options->servers ? 2 : 1,
    };
    /* The servers share it; it signs nothing that outlives them. */
    setenv("PAYMENTS_SECRET", "the demo's own secret, of no worth", 1);
    stage->proxy = proxy_open(options->seed);
    if (!stage->proxy || !make_folder(stage) || !find_programs(stage) ||
        !start_provider(stage))
        return false;
    if (options->servers &&
        !databases_open(&stage->databases, stage->folder, payments_schema))
        return false;
    for (unsigned i = 0; i < stage->n_servers; i++) {
        if (!start_server(stage, i))
            return false;
    }
    return true;
}

bool
stage_kill_server(struct stage *stage, unsigned index)
{
    proxy_aim(stage->proxy, index, 0);
    process_end(&stage->servers[index], SIGKILL);
    return start_server(stage, index);
}

void
stage_provider_log(const struct stage *stage, char *path, size_t size)
{
    in_folder(stage, "provider.log", path, size);
}

static int
remove_one(const char *path, const struct stat *about, int type,
           struct FTW *where)
{
    (void)about;
    (void)type;
    (void)where;
    return remove(path);
}

void
stage_close(struct stage *stage, bool keep)
{
    for (unsigned i = 0; i < stage->n_servers; i++)
        process_end(&stage->servers[i], SIGTERM);
    process_end(&stage->provider, SIGTERM);
    databases_close(&stage->databases);
    proxy_close(stage->proxy);
    if (!stage->folder[0])
        return;
    if (keep)
        fprintf(stderr, "demo: books and logs are in %s\n", stage->folder);
    else
        nftw(stage->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
