#include <idem/postgres.h>

#include "doubts_command.h"
#include "key_command.h"
#include "key_options.h"

#include <stdio.h>
#include <string.h>

/* What an operator does to the store of production. */

static const char help[] =
    "usage: idemctl COMMAND [CONNINFO]\n"
    "\n"
    "  migrate   bring the database's schema up to date, make its partitions\n"
    "  maintain  make the next days' partitions, drop those that are over,\n"
    "            reap opaque keys; servers do it by themselves, too\n"
    "  doctor    look whether a server can work on the database\n"
    "\n"
    "CONNINFO is libpq's, \"host=db dbname=payments\" or a postgresql:// URL.\n"
    "Without it the environment says: PGHOST, PGDATABASE, PGUSER, …\n"
    "\n"
    "usage: idemctl COMMAND KEY OPTIONS\n"
    "\n";
static const char exits[] =
    "\n"
    "Exits 0 when all is well, 1 when not, 2 when it was called wrongly.\n";

static void
put_help(FILE *out)
{
    fputs(help, out);
    fputs(key_usage, out);
    fputs(doubts_usage, out);
    fputs(exits, out);
}

static int
fail(const char *command, const struct idem_error *err)
{
    fprintf(stderr, "idemctl %s: %s: %s\n", command,
            idem_status_name(err->status), err->message);
    return 1;
}

static int
migrate(const char *conninfo)
{
    struct idem_error err;
    unsigned applied = 0;

    if (idem_postgres_migrate(conninfo, &applied, &err) != IDEM_OK)
        return fail("migrate", &err);
    printf("%u migration%s applied\n", applied, applied == 1 ? "" : "s");
    return 0;
}

static int
maintain(const char *conninfo)
{
    struct idem_error err;

    if (idem_postgres_maintain(conninfo, 0, &err) != IDEM_OK)
        return fail("maintain", &err);
    return 0;
}

static void
print_finding(void *with, bool ok, const char *what)
{
    (void)with;
    printf("%s  %s\n", ok ? "ok     " : "problem", what);
}

static int
doctor(const char *conninfo)
{
    struct idem_error err;

    if (idem_postgres_doctor(conninfo, print_finding, NULL, &err) != IDEM_OK)
        return fail("doctor", &err);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(const char *conninfo);
} commands[] = {
    {"migrate", migrate},
    {"maintain", maintain},
    {"doctor", doctor},
};

int
main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";

    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        put_help(stdout);
        return 0;
    }
    if (key_command_is(name))
        return key_command_run(argc - 1, argv + 1);
    if (strcmp(name, "doubts") == 0)
        return doubts_command_run(argc - 1, argv + 1);
    if (argc > 2 && argv[2][0] == '-') {
        fprintf(stderr, "idemctl %s: no option \"%s\"\n", name, argv[2]);
        put_help(stderr);
        return 2;
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (argc <= 3 && strcmp(name, commands[i].name) == 0)
            return commands[i].run(argc > 2 ? argv[2] : NULL);
    if (argc > 3)
        fprintf(stderr, "idemctl: too many arguments; quote the CONNINFO\n");
    else if (name[0])
        fprintf(stderr, "idemctl: no command \"%s\"\n", name);
    put_help(stderr);
    return 2;
}
