#include "grpc_side.h"

#include <cstring>
#include <fstream>
#include <iterator>

namespace grpc_side
{

constexpr int streams_max = 1000;

// "tcp://127.0.0.1:0" as "127.0.0.1:0", "ipc:///x" as "unix:/x".
static std::string
target_of(const char *address)
{
    const char *rest = std::strstr(address, "://") + 3;

    return std::strncmp(address, "ipc", 3) == 0 ? std::string("unix:") + rest
                                                : rest;
}

static std::string
read(const char *name)
{
    std::ifstream file(side_file(name));

    return {std::istreambuf_iterator<char>(file), {}};
}

static std::shared_ptr<grpc::ServerCredentials>
server_credentials(const char *address)
{
    grpc::SslServerCredentialsOptions options;

    if (!side_is_tls(address))
        return grpc::InsecureServerCredentials();
    options.pem_key_cert_pairs.push_back(
        {read(SIDE_KEY), read(SIDE_CERTIFICATE)});
    return grpc::SslServerCredentials(options);
}

static std::shared_ptr<grpc::ChannelCredentials>
channel_credentials(const char *address)
{
    grpc::SslCredentialsOptions options;

    if (!side_is_tls(address))
        return grpc::InsecureChannelCredentials();
    options.pem_root_certs = read(SIDE_CERTIFICATE);
    return grpc::SslCredentials(options);
}

Listening::Listening(const char *where) : address(where)
{
    builder.AddListeningPort(target_of(where), server_credentials(where),
                             &port);
    builder.AddChannelArgument(GRPC_ARG_OPTIMIZATION_TARGET, "throughput");
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, streams_max);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

std::string
Listening::ready() const
{
    if (address.compare(0, 3, "ipc") == 0)
        return address;
    return address.substr(0, address.find("://")) +
           "://127.0.0.1:" + std::to_string(port);
}

Stubs
dial(const side_options &options)
{
    Stubs stubs;

    for (unsigned i = 0; i < options.connections; i++) {
        grpc::ChannelArguments arguments;

        arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
        arguments.SetString(GRPC_ARG_OPTIMIZATION_TARGET, "throughput");
        auto channel = grpc::CreateCustomChannel(
            target_of(options.address), channel_credentials(options.address),
            arguments);
        if (!channel->WaitForConnected(std::chrono::system_clock::now() +
                                       std::chrono::seconds(10)))
            side_die(options.address, "not connected");
        stubs.push_back(Peer::NewStub(channel));
    }
    return stubs;
}

void
prepare(grpc::ClientContext &context)
{
    context.AddMetadata(SIDE_TOKEN_NAME, SIDE_TOKEN);
    context.set_deadline(
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                     gpr_time_from_millis(SIDE_TIMEOUT_MS, GPR_TIMESPAN)));
}

void
check(const std::multimap<grpc::string_ref, grpc::string_ref> &metadata)
{
    auto token = metadata.find(SIDE_TOKEN_NAME);

    if (token == metadata.end() ||
        token->second.size() != std::strlen(SIDE_TOKEN))
        side_die("serve", "no token");
}

void
check(const grpc::Status &status, const Reply &reply,
      const side_options &options)
{
    if (!status.ok())
        side_die("call", status.error_message().c_str());
    if (reply.body().size() != options.bytes ||
        std::memcmp(reply.body().data(), options.body, options.bytes) != 0)
        side_die("call", "another body came back");
}

} // namespace grpc_side
