// gRPC's blocking stubs, a thread for each call in flight, against its sync
// server.
#include "grpc_side.h"

#include <thread>

using namespace grpc_side;

namespace
{

class Service : public Peer::Service
{
    grpc::Status Echo(grpc::ServerContext *context, const Request *request,
                      Reply *reply) override
    {
        check(context->client_metadata());
        reply->set_body(request->body());
        return grpc::Status::OK;
    }
};

void
serve(const char *address, const char *)
{
    Service service;
    Listening listening(address);

    listening.builder.RegisterService(&service);
    auto server = listening.builder.BuildAndStart();
    if (!server)
        side_die(address, "not started");
    side_ready(listening.ready().c_str());
    server->Wait();
}

void
call_on(Peer::Stub *stub, side_options options, tally *counts)
{
    Request request;
    Reply reply;
    int64_t since_ns;

    request.set_body(options.body, options.bytes);
    do {
        grpc::ClientContext context;

        since_ns = now_ns();
        prepare(context);
        check(stub->Echo(&context, request, &reply), reply, options);
    } while (tally_add(counts, since_ns));
}

void
call(const side_options *options, tally *counts)
{
    static Stubs stubs = dial(*options); // as long as the process

    for (unsigned i = 0; i < options->in_flight; i++)
        std::thread(call_on, stubs[i % stubs.size()].get(), *options, counts)
            .detach();
}

} // namespace

int
main(int argc, char **argv)
{
    static const struct side side = {serve, call};

    return side_main(argc, argv, &side);
}
