#include "site.h"

#include "child.h"
#include "effects.h"
#include "loopback.h"

#include <idem/postgres.h>
#include <idem/standard.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define STARTS_MAX 20

static void
must(enum idem_status status, const struct idem_error *err)
{
    if (status != IDEM_OK)
        fail_msg("%s: %s", idem_status_name(status), err->message);
}

void
site_start(struct site *site, unsigned i)
{
    struct site_server *server = &site->servers[i];
    const struct child_options options = {.log = server->log};
    const char *const words[] = {
        EFFECTS_SERVER,
        server->address,
        site->push_log,
        "postgres",
        postgres_conninfo_at(site->postgres, tcp_proxy_port(site->proxy)),
        redis_house_url(site->redis),
        NULL};

    setenv("EFFECTS_CLOCK", server->clock_file, 1);
    for (unsigned tries = 0; tries < STARTS_MAX; tries++) {
        server->pid = child_serve(&options, words);
        if (server->pid)
            return;
    }
    child_show(server->log);
    fail_msg("server %u does not listen", i);
}

static void
open_server(struct site *site, unsigned i)
{
    struct site_server *server = &site->servers[i];
    const struct idem_channel_options options = {.clock = &site->clock.clock};
    char name[16];
    struct idem_error err;

    snprintf(name, sizeof(name), "server-%u", i);
    tempdir_file(&site->dir, name, server->log, sizeof(server->log));
    snprintf(name, sizeof(name), "clock-%u", i);
    tempdir_file(&site->dir, name, server->clock_file,
                 sizeof(server->clock_file));
    stepped_clock_open(&server->clock, server->clock_file);
    snprintf(server->address, sizeof(server->address), "tcp://127.0.0.1:%u",
             loopback_free_port());
    site_start(site, i);
    must(idem_client_open(&server->channel, server->address, &options, &err),
         &err);
}

void
site_open(struct site *site, bool outside)
{
    const struct postgres_options options = {.durable = true};
    char clock_file[128];
    struct idem_error err;

    *site = (struct site){0};
    tempdir_open(&site->dir);
    tempdir_file(&site->dir, "pushes", site->push_log, sizeof(site->push_log));
    tempdir_file(&site->dir, "clock", clock_file, sizeof(clock_file));
    stepped_clock_open(&site->clock, clock_file);
    site->postgres = postgres_start(&options);
    site->redis = redis_house_start();
    site->proxy = tcp_proxy_start(postgres_port(site->postgres));
    must(idem_postgres_migrate(postgres_conninfo(site->postgres), NULL, &err),
         &err);
    postgres_strict(site->postgres);
    postgres_sql(site->postgres, EFFECTS_SCHEMA);
    if (outside)
        setenv("EFFECTS_OUTSIDE", "1", 1);
    for (unsigned i = 0; i < SITE_SERVERS; i++)
        open_server(site, i);
}

void
site_stop(struct site *site)
{
    for (unsigned i = 0; i < SITE_SERVERS; i++) {
        idem_channel_close(site->servers[i].channel);
        site->servers[i].channel = NULL;
        child_stop(site->servers[i].pid, SIGTERM);
        site->servers[i].pid = 0;
    }
}

void
site_close(struct site *site)
{
    site_stop(site);
    for (unsigned i = 0; i < SITE_SERVERS; i++)
        stepped_clock_close(&site->servers[i].clock);
    stepped_clock_close(&site->clock);
    tcp_proxy_free(site->proxy);
    redis_house_free(site->redis);
    postgres_free(site->postgres);
    tempdir_close(&site->dir);
}
