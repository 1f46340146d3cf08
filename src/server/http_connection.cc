// A connection goes round:
//
//   reading a request -> answering -> reading ...      and at the end -> lingering -> closed
//
// Run does what can be done, step by step, until nothing more can be done now: there is nothing to
// read, the client takes nothing, the answer is not there. After some steps it lets others run.
//
// Reading. Between requests a connection may rest for `idle_seconds`; once the first byte is there
// the whole request has to come within `read_seconds`, else it is answered with 408. When the
// headers are there the request is judged; a body that is not wanted is not read. What a body has
// beyond 64 KiB has to find room among the bodies of others (waiting_bodies.h); until then nothing
// is read.
//
// Answering. A whole reply is one text. A stream is pulled from the route whenever the last piece
// has left for the kernel, in chunks; nothing is kept for a client that does not read, and one that
// takes nothing for `write_seconds` is cut off.
//
// Clients that go. A client that has closed its side and one that has closed altogether look the
// same until something is sent: the second answers with a reset. The first is owed its answer. So
// while a whole answer is made for a client that sends no more, it is sent an interim response (100
// Continue, which every client of HTTP/1.1 has to skip) every now and then.
//
// Memory that runs out. An exception anywhere in Run closes the connection, and the work for
// it hears that the client has gone. Where the handler lets go of an exchange without an answer,
// the reply is written into bytes that the connection has from the beginning.
#include "src/server/http_connection.h"

#include <algorithm>
#include <cstdio>
#include <random>
#include <utility>

#include "src/base/os/random.h"

namespace pawl::server {
namespace {

constexpr size_t kMostIdBytes = 128;
// Read at once; and pieces of a stream are joined up to here before they are sent.
constexpr size_t kPieceBytes = 64 << 10;
// Of a refused body as much is read and thrown away, so that the client can read why.
constexpr size_t kMostLingering = size_t{64} << 20;
constexpr double kLingerSeconds = 1;
constexpr int kStepsAtATime = 64;
constexpr std::chrono::milliseconds kFirstProbe{250};
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

std::string NewRequestId() {
  thread_local std::mt19937_64 random{os::RandomSeed()};
  static constexpr char kHex[] = "0123456789abcdef";
  std::string id = "req_";
  for (uint64_t bits = random(), i = 0; i < 16; ++i, bits >>= 4) id += kHex[bits & 15];
  return id;
}

// An id from the client is written to logs and headers: only what is harmless there.
bool IsGoodId(std::string_view id) {
  return !id.empty() && id.size() <= kMostIdBytes && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.' || c == ':';
  });
}

}  // namespace

std::string_view HttpRequest::Header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return {};
}

std::string_view StatusText(int status) {
  static constexpr std::pair<int, std::string_view> kTexts[] = {
      {200, "OK"},
      {204, "No Content"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {413, "Content Too Large"},
      {414, "URI Too Long"},
      {415, "Unsupported Media Type"},
      {417, "Expectation Failed"},
      {422, "Unprocessable Content"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {503, "Service Unavailable"},
      {505, "HTTP Version Not Supported"},
  };
  for (const auto& [number, text] : kTexts) {
    if (number == status) return text;
  }
  return status < 500 ? "Bad Request" : "Internal Server Error";
}

// ---- The exchange ----

class HttpExchange : public Exchange {
 public:
  HttpExchange(std::shared_ptr<HttpConnection> connection, uint64_t serial, HttpRequest request)
      : connection_(std::move(connection)), serial_(serial), request_(std::move(request)) {}
  ~HttpExchange() override {
    if (!answered_) connection_->PutLost(serial_);
  }
  const HttpRequest& request() const override { return request_; }

  void Reply(HttpReply reply) override {
    if (!answered_.exchange(true)) connection_->PutAnswer(serial_, std::move(reply), nullptr);
  }
  void Stream(HttpReply head, Pull pull) override {
    if (!answered_.exchange(true)) {
      connection_->PutAnswer(serial_, std::move(head), std::move(pull));
    }
  }
  void Wake() override { connection_->Wake(); }
  void Abort() noexcept override { connection_->PutAbort(serial_); }
  void Post(std::function<void()> work) override { connection_->PutWork(std::move(work)); }
  void OnGone(std::function<void()> gone) override {
    {
      const std::lock_guard lock(mutex_);
      if (!has_gone_) {
        gone_.swap(gone);
        return;
      }
    }
    gone();
  }

  void TellGone() {
    std::function<void()> gone;
    {
      const std::lock_guard lock(mutex_);
      has_gone_ = true;
      gone.swap(gone_);
    }
    if (gone) gone();
  }
  void Forget() noexcept {
    std::function<void()> gone;
    const std::lock_guard lock(mutex_);
    gone.swap(gone_);
  }

 private:
  const std::shared_ptr<HttpConnection> connection_;
  const uint64_t serial_;
  const HttpRequest request_;
  std::atomic<bool> answered_{false};
  std::mutex mutex_;
  bool has_gone_ = false;
  std::function<void()> gone_;
};

void HttpConnection::PutAnswer(uint64_t serial, HttpReply reply, Exchange::Pull pull) noexcept {
  {
    const std::lock_guard lock(mail_mutex_);
    if (serial != mail_.serial || mail_.reply || mail_.lost) return;
    mail_.reply.emplace(std::move(reply));
    mail_.pull.swap(pull);
  }
  runner_->Schedule(*this);
}

void HttpConnection::PutLost(uint64_t serial) noexcept {
  {
    const std::lock_guard lock(mail_mutex_);
    if (serial != mail_.serial || mail_.reply) return;
    mail_.lost = true;
  }
  runner_->Schedule(*this);
}

void HttpConnection::PutAbort(uint64_t serial) noexcept {
  {
    const std::lock_guard lock(mail_mutex_);
    if (serial != mail_.serial) return;
    mail_.aborted = true;
  }
  runner_->Schedule(*this);
}

void HttpConnection::PutWork(std::function<void()> work) {
  {
    const std::lock_guard lock(mail_mutex_);
    mail_.work.push_back(std::move(work));
  }
  if (runner_->Schedule(*this)) return;
  // Nothing runs any more, and work may hold the exchange, which holds this.
  std::vector<std::function<void()>> dropped;
  const std::lock_guard lock(mail_mutex_);
  dropped.swap(mail_.work);
}

// ---- Run ----

HttpConnection::HttpConnection(std::shared_ptr<HttpShared> shared, std::shared_ptr<IoRunner> runner,
                               std::unique_ptr<ByteStream> stream, std::string peer)
    : shared_(std::move(shared)),
      runner_(std::move(runner)),
      stream_(std::move(stream)),
      peer_(std::move(peer)),
      reader_({.header_bytes = shared_->options.max_header_bytes,
               .body_bytes = shared_->options.max_body_bytes}) {
  mail_.work.reserve(4);
  ++shared_->connections;
}

HttpConnection::~HttpConnection() { Close(); }

void HttpConnection::Run(unsigned events, TimePoint now) noexcept {
  now_ = now;
  try {
    if (end_ == kNever && phase_ == Phase::kReading) EndIn(shared_->options.idle_seconds);
    RunWork();
    if (phase_ == Phase::kClosed) return;
    if ((events & kGone) != 0 || shared_->closing || Aborted()) return Close();
    if ((events & kHalfClosed) != 0) half_closed_ = true;
    if ((events & kTime) != 0) Late();
    for (int i = 0; i < kStepsAtATime; ++i) {
      if (!Step()) return LookAgainAt(std::min(end_, probe_));
    }
    runner_->Schedule(*this);
  } catch (...) {
    Close();
  }
}

void HttpConnection::RunWork() {
  for (;;) {
    std::function<void()> work;
    {
      const std::lock_guard lock(mail_mutex_);
      if (mail_.work.empty()) return;
      work.swap(mail_.work.front());
      mail_.work.erase(mail_.work.begin());
    }
    try {
      work();
    } catch (...) {
      Close();
    }
  }
}

bool HttpConnection::Aborted() {
  const std::lock_guard lock(mail_mutex_);
  return mail_.aborted;
}

void HttpConnection::EndIn(double seconds) {
  end_ = now_ + std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
}

void HttpConnection::LookAgainAt(TimePoint at) {
  if (waits_) at = std::min(at, now_ + WaitingBodies::kStallTime / 5);
  if (phase_ != Phase::kClosed) SetDeadline(at);
}

// A deadline has come, of this or of what went before.
void HttpConnection::Late() {
  if (now_ < end_) return;
  if (phase_ == Phase::kReading && !AtRest()) {
    return Refuse({.status = 408, .message = "the request did not arrive in time"});
  }
  Close();
}

bool HttpConnection::Step() {
  switch (phase_) {
    case Phase::kReading:
      return StepReading();
    case Phase::kAnswering:
      return StepAnswering();
    case Phase::kLingering:
      return StepLingering();
    case Phase::kClosed:
      break;
  }
  return false;
}

// ---- Reading ----

bool HttpConnection::RoomForBody(size_t& room) {
  if (dropped()) {
    Refuse(
        {.status = 408, .message = "the request arrived too slowly, and others needed the memory"});
    return false;
  }
  const size_t size = reader_.request().body.size();
  waits_ = WaitingBodies::Room(*this) <= size && !shared_->bodies.Grow(*this, now_);
  if (waits_) return false;
  room = std::min(room, WaitingBodies::Room(*this) - size);
  return true;
}

bool HttpConnection::StepReading() {
  if (!interim_.empty()) {
    const int64_t n = stream_->Write(interim_.data(), interim_.size());
    if (n == ByteStream::kBroken) Close();
    if (n > 0) interim_.remove_prefix(static_cast<size_t>(n));
    if (phase_ == Phase::kClosed) return false;
  }
  if (AtRest() && shared_->draining) {
    Close();
    return false;
  }
  if (in_at_ < in_.size()) {
    in_at_ += Take(std::string_view(in_).substr(in_at_));
    return true;
  }
  in_.clear();
  in_at_ = 0;
  size_t room = kPieceBytes;
  if (reader_.state() == HttpReader::State::kBody && !RoomForBody(room)) {
    return phase_ != Phase::kReading;
  }
  char piece[kPieceBytes];
  const int64_t n = stream_->Read(piece, room);
  if (n > 0) {
    const std::string_view read(piece, static_cast<size_t>(n));
    in_.assign(read.substr(Take(read)));
    return true;
  }
  if (n == ByteStream::kNotNow) return false;
  half_closed_ = true;
  if (n == ByteStream::kEnd && reader_.begun()) {
    Refuse({.message = "not HTTP: the request ends before its end"});
    return true;
  }
  Close();
  return false;
}

// As far as one request goes; returns how many of the bytes that is.
size_t HttpConnection::Take(std::string_view bytes) {
  const size_t given = bytes.size();
  if (!reader_.begun()) EndIn(shared_->options.read_seconds);
  while (phase_ == Phase::kReading) {
    bytes.remove_prefix(reader_.Feed(bytes));
    switch (reader_.state()) {
      case HttpReader::State::kHeadDone:
        TakeHead(!bytes.empty());
        break;
      case HttpReader::State::kDone:
        Handle();
        break;
      case HttpReader::State::kFailed:
        Refuse(reader_.error());
        break;
      default:
        // An empty line is no request yet.
        if (!reader_.begun()) EndIn(shared_->options.idle_seconds);
        return given;
    }
  }
  return given - bytes.size();
}

// All of a request is known but its body. `more`: bytes of that are there already.
void HttpConnection::TakeHead(bool more) {
  const HttpRequest& head = reader_.request();
  http11_ = reader_.http11();
  head_only_ = head.method == "HEAD";
  keep_alive_ = reader_.keep_alive();
  if (std::optional<HttpReply> reply = Judge()) {
    keep_alive_ = keep_alive_ && !reader_.has_body();
    BeginAnswer();
    return StartReply(*std::move(reply), nullptr);
  }
  if (reader_.expects() == HttpReader::Expects::kContinue && reader_.has_body() && !more) {
    interim_ = kContinue;
  }
  reader_.ReadBody();
}

std::optional<HttpReply> HttpConnection::Judge() {
  const HttpRequest& head = reader_.request();
  const std::string_view given = head.Header("x-request-id");
  id_ = IsGoodId(given) ? std::string(given) : NewRequestId();
  reader_.SetId(id_);
  reader_.SetPeer(peer_);
  const HttpOptions& options = shared_->options;
  const HttpHandler& handler = shared_->handler;
  if (const std::optional<ApiError> error = JudgeHeaders(options, head)) {
    return handler.refuse(head, *error);
  }
  if (std::optional<HttpReply> reply = handler.judge(head)) return reply;
  if (reader_.length() > options.max_body_bytes) {
    return handler.refuse(head, {.status = 413,
                                 .message = "the body is larger than " +
                                            std::to_string(options.max_body_bytes) + " bytes"});
  }
  if (reader_.expects() == HttpReader::Expects::kOther) {
    return handler.refuse(head, {.status = 417, .message = "of Expect only 100-continue is known"});
  }
  return std::nullopt;
}

// What is not read to its end, so nothing after it can be.
void HttpConnection::Refuse(const ApiError& error) {
  if (id_.empty()) id_ = NewRequestId();
  reader_.SetId(id_);
  keep_alive_ = false;
  head_only_ = reader_.request().method == "HEAD";
  http11_ = true;
  BeginAnswer();
  StartReply(shared_->handler.refuse(reader_.request(), error), nullptr);
}

void HttpConnection::Handle() {
  BeginAnswer();
  uint64_t serial = 0;
  {
    const std::lock_guard lock(mail_mutex_);
    serial = mail_.serial;
  }
  auto exchange = std::make_shared<HttpExchange>(
      std::static_pointer_cast<HttpConnection>(shared_from_this()), serial, reader_.TakeRequest());
  exchange_ = exchange;
  try {
    shared_->handler.handle(std::move(exchange));
  } catch (...) {
    // Where no one has it any more it has said that it is lost. Else those who have it hear that
    // the client has gone.
    if (!exchange_.expired()) throw;
  }
}

// ---- Answering ----

void HttpConnection::BeginAnswer() {
  phase_ = Phase::kAnswering;
  waits_ = false;
  started_ = false;
  end_ = kNever;
  probe_ = kNever;
  probe_after_ = kFirstProbe;
  shared_->bodies.Leave(*this, now_);
  if (!std::exchange(counted_, true)) ++shared_->exchanges;
}

bool HttpConnection::TakeAnswer() {
  std::optional<HttpReply> reply;
  Exchange::Pull pull;
  {
    const std::lock_guard lock(mail_mutex_);
    if (!mail_.reply && !mail_.lost) return false;
    reply.swap(mail_.reply);
    pull.swap(mail_.pull);
  }
  if (reply) {
    StartReply(*std::move(reply), std::move(pull));
  } else {
    StartLost();
  }
  return true;
}

void HttpConnection::StartReply(HttpReply reply, Exchange::Pull pull) {
  started_ = true;
  const bool stream = pull != nullptr;
  chunked_ = stream && http11_;
  if (shared_->draining || (stream && !http11_)) keep_alive_ = false;
  out_.assign(interim_);
  interim_ = {};
  out_ += "HTTP/1.1 " + std::to_string(reply.status) + " ";
  out_ += StatusText(reply.status);
  out_ += "\r\ncontent-type: " + reply.content_type + "\r\nx-request-id: " + id_ + "\r\n";
  for (const auto& [name, value] : reply.headers) out_ += name + ": " + value + "\r\n";
  if (const std::string& origin = shared_->options.cors_origin; !origin.empty()) {
    out_ += "access-control-allow-origin: " + origin + "\r\n";
    out_ += "access-control-expose-headers: x-request-id, retry-after\r\n";
    if (reply.status == 204) {  // what an OPTIONS asks
      out_ += "access-control-allow-methods: GET, POST, DELETE, OPTIONS\r\n";
      out_ += "access-control-allow-headers: *, authorization\r\naccess-control-max-age: 600\r\n";
    }
  }
  if (!keep_alive_) {
    out_ += "connection: close\r\n";
  } else if (!http11_) {
    out_ += "connection: keep-alive\r\n";
  }
  if (stream) {
    out_ += "cache-control: no-cache\r\nx-accel-buffering: no\r\n";
    if (chunked_) out_ += "transfer-encoding: chunked\r\n";
  } else if (reply.status != 204) {
    out_ += "content-length: " + std::to_string(reply.body.size()) + "\r\n";
  }
  out_ += "\r\n";
  if (!stream && !head_only_) out_ += reply.body;
  if (!head_only_) pull_.swap(pull);
  unsent_ = out_;
  EndIn(shared_->options.write_seconds);
}

// Takes no memory.
void HttpConnection::StartLost() {
  static constexpr char kBody[] =
      "{\"error\":{\"message\":\"the request was lost\",\"type\":\"server_error\",\"param\":null,"
      "\"code\":null}}";
  const int size =
      std::snprintf(lost_.data(), lost_.size(),
                    "%.*sHTTP/1.1 500 Internal Server Error\r\ncontent-type: application/json\r\n"
                    "x-request-id: %s\r\nx-should-retry: false\r\nconnection: close\r\n"
                    "content-length: %zu\r\n\r\n%s",
                    static_cast<int>(interim_.size()), interim_.data(), id_.c_str(),
                    sizeof kBody - 1, head_only_ ? "" : kBody);
  interim_ = {};
  keep_alive_ = false;
  started_ = true;
  unsent_ = {lost_.data(), std::min(static_cast<size_t>(size), lost_.size() - 1)};
  EndIn(shared_->options.write_seconds);
}

bool HttpConnection::StepAnswering() {
  if (!started_) {
    if (TakeAnswer()) return true;
    if (half_closed_ && http11_ && interim_.empty()) {
      if (probe_ == kNever) {
        probe_ = now_ + probe_after_;
      } else if (now_ >= probe_) {
        interim_ = kContinue;
        probe_after_ *= 2;
        probe_ = now_ + probe_after_;
      }
    }
    if (interim_.empty()) return false;
    const int64_t n = stream_->Write(interim_.data(), interim_.size());
    if (n == ByteStream::kBroken) Close();
    if (n > 0) interim_.remove_prefix(static_cast<size_t>(n));
    return false;
  }
  probe_ = kNever;
  if (!unsent_.empty()) {
    const int64_t n = stream_->Write(unsent_.data(), unsent_.size());
    if (n == ByteStream::kBroken) Close();
    if (n <= 0) return false;
    unsent_.remove_prefix(static_cast<size_t>(n));
    EndIn(shared_->options.write_seconds);
    return true;
  }
  end_ = kNever;
  if (pull_ == nullptr) {
    Answered();
    return true;
  }
  Pump();
  return !unsent_.empty() || pull_ == nullptr;
}

// The next piece of a stream.
void HttpConnection::Pump() {
  std::string piece;
  bool more = true;
  while (more && piece.size() < kPieceBytes) {
    const size_t before = piece.size();
    more = pull_(piece);
    if (piece.size() == before) break;
  }
  if (piece.empty() && more) return;
  out_.clear();
  if (chunked_ && !piece.empty()) {
    char size[20];
    std::snprintf(size, sizeof size, "%zx\r\n", piece.size());
    out_.append(size).append(piece).append("\r\n");
  } else {
    out_ = std::move(piece);
  }
  if (!more) {
    if (chunked_) out_ += "0\r\n\r\n";
    pull_ = nullptr;
  }
  unsent_ = out_;
  EndIn(shared_->options.write_seconds);
}

void HttpConnection::Answered() {
  if (std::exchange(counted_, false)) --shared_->exchanges;
  if (const auto exchange = exchange_.lock()) exchange->Forget();
  exchange_.reset();
  out_ = {};
  unsent_ = {};
  pull_ = nullptr;
  const bool goes_on = keep_alive_;
  NextRequest();
  if (goes_on) return;
  // Closing now would reset the connection where bytes are under way that are not read, before
  // the client has read why.
  phase_ = Phase::kLingering;
  lingered_ = 0;
  in_ = {};
  in_at_ = 0;
  stream_->ShutdownSend();
  EndIn(kLingerSeconds);
}

void HttpConnection::NextRequest() {
  reader_.Reset();
  id_.clear();
  phase_ = Phase::kReading;
  EndIn(shared_->options.idle_seconds);
  std::optional<HttpReply> reply;
  Exchange::Pull pull;
  const std::lock_guard lock(mail_mutex_);
  ++mail_.serial;
  mail_.lost = false;
  reply.swap(mail_.reply);
  pull.swap(mail_.pull);
}

// ---- The end ----

bool HttpConnection::StepLingering() {
  char piece[kPieceBytes];
  const int64_t n = stream_->Read(piece, sizeof piece);
  if (n == ByteStream::kNotNow) return false;
  lingered_ += n > 0 ? static_cast<size_t>(n) : 0;
  if (n > 0 && lingered_ <= kMostLingering) return true;
  Close();
  return false;
}

void HttpConnection::Close() noexcept {
  if (phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  SetDeadline(kNever);
  shared_->bodies.Leave(*this, now_);
  stream_->Close();
  runner_->Remove(*this);
  reader_.Reset();
  in_ = {};
  out_ = {};
  unsent_ = interim_ = {};
  pull_ = nullptr;
  --shared_->connections;
  if (std::exchange(counted_, false)) {
    --shared_->exchanges;
    TellGone();
  }
}

void HttpConnection::TellGone() noexcept {
  const auto exchange = exchange_.lock();
  if (exchange == nullptr) return;
  try {
    exchange->TellGone();
  } catch (...) {
    // The work for it finds out when nothing can be sent.
  }
}

}  // namespace pawl::server
