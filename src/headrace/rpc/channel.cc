#include "headrace/rpc/channel.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include "headrace/rpc/credential_file.h"
#include "headrace/rpc/token_fetcher.h"

namespace headrace::rpc {
namespace {

// Measured: as good as HTTP/2's own maximum, and a response of the usual 1 MiB is one frame. gRPC's own sizes of reads are as good as
// larger ones, and reuse warmer memory.
constexpr int kMaxFrameSize = 1 << 20;
// A dropped path is noticed after 40 s; pings more often than every 30 s make some front ends answer "too many pings" (fact U73).
constexpr int kKeepaliveMs = 30'000;
constexpr int kKeepaliveTimeoutMs = 10'000;
// The retry tables own the waiting; the channel only must not be slower than they are (at 5 s, reads took up to 10 s to see a service that
// was back).
constexpr int kFirstReconnectMs = 100;
constexpr int kLongestReconnectMs = 1'000;
constexpr int kStreamsPerChannel = 2;  // spec: one channel per two to four streams
constexpr int kMostChannels = 8;
constexpr int64_t kLongestBundle = 4 << 20;  // the system's own, with 140 certificates, has 220 kB

grpc::ChannelArguments Arguments(const ChannelOptions& options, Window window) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, static_cast<int>(WindowBytes(Window::kFixed)));
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, window == Window::kProbed ? 1 : 0);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kMaxFrameSize);
  arguments.SetMaxReceiveMessageSize(-1);  // blocks of 128 MiB exist (fact R10)
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  // Also after a minute in which no message came. gRPC's default stops after two pings, and a path that dies later is never noticed.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Channels with equal arguments share one socket unless each has a pool of its own.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // a resumed read needs a new offset; only our tables retry
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLongestReconnectMs);
  // gRPC gives a connection attempt at least this long, whatever its name says.
  if (options.connect_limit.count() > 0) {
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(std::min<int64_t>(options.connect_limit.count(), 3'600'000)));
  }
  arguments.SetUserAgentPrefix(UserAgent());
  return arguments;
}

arrow::Status CredentialError(std::string_view why) {
  return MakeError({.code = Code::kUnauthenticated, .resource = "credentials", .reason = "CREDENTIALS"}, std::string(why));
}

/// The PEM text of ca_bundle; empty when the option is not given.
arrow::Result<std::string> LoadCertificates(const ChannelOptions& options, FileSystem* files) {
  if (options.ca_bundle.empty()) return std::string();
  auto text = files->ReadAll(options.ca_bundle, kLongestBundle);
  if (!text.ok()) return WithContext(text.status(), "ca_bundle");
  if (text->find("-----BEGIN CERTIFICATE-----") == std::string::npos) {
    return InvalidOption("ca_bundle", fmt::format("ca_bundle {} holds no certificate in PEM", options.ca_bundle));
  }
  return text;
}

/// Where the calls' tokens come from; null when they need none, or when gRPC adds them itself.
arrow::Result<std::unique_ptr<TokenSource>> MakeTokens(ChannelOptions* options, const std::string& certificates, FileSystem* files,
                                                       Clock* clock) {
  const Credentials& credentials = options->credentials;
  if (options->endpoint.plaintext) return nullptr;
  if (credentials.kind == CredentialKind::kAccessToken) {
    ARROW_ASSIGN_OR_RAISE(std::string token, LoadAccessToken(credentials));
    return std::make_unique<TokenSource>(MakeFixedToken(std::move(token)), clock);
  }
  std::optional<CredentialFile> file;
  const bool adc = credentials.kind == CredentialKind::kApplicationDefault;
  if (adc) {
    ARROW_ASSIGN_OR_RAISE(file, FindDefaultCredentialFile(DefaultCredentialPath(), files));
  } else if (credentials.kind == CredentialKind::kFile) {
    ARROW_ASSIGN_OR_RAISE(file, LoadCredentialFile(credentials, files));
  }
  if (!file.has_value()) return nullptr;
  if (const auto* user = std::get_if<AuthorizedUser>(&*file); user != nullptr && options->quota_project.empty()) {
    options->quota_project = user->quota_project;
  }
  TokenFetcherOptions fetcher{.found_by_adc = adc, .ca_certificates = certificates, .connect_limit = options->connect_limit};
  return std::make_unique<TokenSource>(MakeTokenFetcher(*std::move(file), std::move(fetcher), clock), clock);
}

/// What secures a channel. Tokens are no part of it but of each call (ByteStream): gRPC sends them over an encrypted channel only.
arrow::Result<std::shared_ptr<grpc::ChannelCredentials>> SecureChannel(const ChannelOptions& options, const std::string& certificates,
                                                                       bool has_tokens) {
  if (options.endpoint.plaintext) return grpc::InsecureChannelCredentials();
  if (has_tokens || options.credentials.kind != CredentialKind::kApplicationDefault) {
    return grpc::SslCredentials({.pem_root_certs = certificates, .pem_private_key = "", .pem_cert_chain = ""});
  }
  // External accounts and the metadata server are gRPC's, with its own certificates.
  if (!certificates.empty()) {
    return Unsupported(
        "ca_bundle",
        "ca_bundle together with the credentials adc is supported where adc has the file of a service account's key or of an "
        "authorized user, and finds none: give the option credentials, or set GRPC_DEFAULT_SSL_ROOTS_FILE_PATH instead");
  }
  auto found = grpc::GoogleDefaultCredentials();
  if (found == nullptr) {
    return CredentialError(
        "no Application Default Credentials were found; run \"gcloud auth application-default login\", set "
        "GOOGLE_APPLICATION_CREDENTIALS, or give the option credentials");
  }
  return found;
}

}  // namespace

std::string UserAgent() { return "headrace/" HEADRACE_VERSION; }

arrow::Result<std::shared_ptr<ChannelPool>> ChannelPool::Make(ChannelOptions options, FileSystem* files, Clock* clock) {
  ARROW_ASSIGN_OR_RAISE(const std::string certificates, LoadCertificates(options, files));
  ARROW_ASSIGN_OR_RAISE(auto tokens, MakeTokens(&options, certificates, files, clock));
  ARROW_ASSIGN_OR_RAISE(auto credentials, SecureChannel(options, certificates, tokens != nullptr));
  return std::shared_ptr<ChannelPool>(new ChannelPool(std::move(options), std::move(credentials), std::move(tokens)));
}

ChannelPool::ChannelPool(ChannelOptions options, std::shared_ptr<grpc::ChannelCredentials> credentials, std::unique_ptr<TokenSource> tokens)
    : options_(std::move(options)), credentials_(std::move(credentials)), tokens_(std::move(tokens)) {}

ChannelPool::~ChannelPool() = default;

std::shared_ptr<grpc::Channel> ChannelPool::Open(Window window) {
  return grpc::CreateCustomChannel(options_.endpoint.target(), credentials_, Arguments(options_, window));
}

ChannelPool::Lease ChannelPool::Acquire(Window window) {
  const int64_t most = options_.channels > 0 ? options_.channels : kMostChannels;
  const int wanted_streams = options_.channels > 0 ? 1 : kStreamsPerChannel;
  std::lock_guard<std::mutex> guard(mutex_);
  const auto wanted = [&](const Entry& entry) { return entry.window == window; };
  auto least = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (wanted(*entry) && (least == entries_.end() || entry->streams < least->streams)) least = entry;
  }
  if (least == entries_.end() || (least->streams >= wanted_streams && std::count_if(entries_.begin(), entries_.end(), wanted) < most)) {
    entries_.push_back({.channel = Open(window), .window = window});
    least = entries_.end() - 1;
  }
  ++least->streams;
  Lease lease;
  lease.pool_ = shared_from_this();
  lease.channel_ = least->channel;
  return lease;
}

int ChannelPool::open_channels() const {
  std::lock_guard<std::mutex> guard(mutex_);
  return static_cast<int>(entries_.size());
}

void ChannelPool::Return(const grpc::Channel* channel) {
  std::lock_guard<std::mutex> guard(mutex_);
  for (Entry& entry : entries_) {
    if (entry.channel.get() == channel) --entry.streams;
  }
}

void ChannelPool::Remove(const grpc::Channel* channel) {
  std::lock_guard<std::mutex> guard(mutex_);
  std::erase_if(entries_, [&](const Entry& entry) { return entry.channel.get() == channel; });
}

ChannelPool::Lease& ChannelPool::Lease::operator=(Lease&& other) noexcept {
  if (this != &other) {
    Return();
    pool_ = std::move(other.pool_);
    channel_ = std::move(other.channel_);
  }
  return *this;
}

void ChannelPool::Lease::MarkBroken() {
  if (pool_ != nullptr) pool_->Remove(channel_.get());
}

void ChannelPool::Lease::Return() {
  if (pool_ != nullptr) pool_->Return(channel_.get());
  pool_.reset();
  channel_.reset();
}

}  // namespace headrace::rpc
