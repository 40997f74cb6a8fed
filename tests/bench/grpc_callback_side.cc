// gRPC's callback API, on both sides.
#include "grpc_side.h"

using namespace grpc_side;

namespace
{

class Service : public Peer::CallbackService
{
    grpc::ServerUnaryReactor *Echo(grpc::CallbackServerContext *context,
                                   const Request *request,
                                   Reply *reply) override
    {
        auto *reactor = context->DefaultReactor();

        check(context->client_metadata());
        reply->set_body(request->body());
        reactor->Finish(grpc::Status::OK);
        return reactor;
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

// One call after another.
class Place
{
  public:
    Place(Peer::Stub *stub, const side_options &options, tally *counts)
        : stub_(stub), options_(options), counts_(counts)
    {
        request_.set_body(options.body, options.bytes);
    }

    void start()
    {
        since_ns_ = now_ns();
        context_ = std::make_unique<grpc::ClientContext>();
        prepare(*context_);
        stub_->async()->Echo(context_.get(), &request_, &reply_,
                             [this](const grpc::Status &status) {
                                 check(status, reply_, options_);
                                 if (tally_add(counts_, since_ns_))
                                     start();
                             });
    }

  private:
    Peer::Stub *stub_;
    side_options options_;
    tally *counts_;
    int64_t since_ns_ = 0;
    std::unique_ptr<grpc::ClientContext> context_;
    Request request_;
    Reply reply_;
};

// Places live as long as the process.
void
call(const side_options *options, tally *counts)
{
    static Stubs stubs = dial(*options);

    for (unsigned i = 0; i < options->in_flight; i++)
        (new Place(stubs[i % stubs.size()].get(), *options, counts))->start();
}

} // namespace

int
main(int argc, char **argv)
{
    static const struct side side = {serve, call};

    return side_main(argc, argv, &side);
}
