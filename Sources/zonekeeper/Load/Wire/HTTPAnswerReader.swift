import NIOCore

/// Why bytes are not an answer in HTTP/1.1. The connection is of no more use.
struct HTTPAnswerError: Error, Hashable, Sendable {
    var problem: String
}

/// One answer in HTTP/1.1, as far as a load needs it.
struct HTTPAnswer: Sendable {
    var status: Int
    var body: ByteBuffer
    /// Seconds, of the header `Retry-After`.
    var retryAfterSeconds: Double?
    /// nil where neither of the two headers is there.
    var budget: RateBudget?
    /// Whether the server closes the connection after it.
    var closes: Bool
}

/// Takes the bytes of a connection as they come and gives whole answers.
///
/// It knows answers to POST and GET with `Content-Length` or chunks, which is what nodes send: a small parser, as the cost of a
/// general one would be most of what a request costs the load tester.
struct HTTPAnswerReader: Sendable {
    private struct Head {
        var status = 0
        var bodyBytes: Int?
        var isChunked = false
        var retryAfterSeconds: Double?
        var budget: RateBudget?
        var closes = false
    }

    private var buffer = ByteBuffer()
    private var head: Head?
    private var chunks = ByteBuffer()
    private static let headBytesMax = 64 << 10
    private static let bodyBytesMax = 64 << 20

    /// Whether bytes of an answer came that is not whole yet.
    var isInsideAnswer: Bool { head != nil || buffer.readableBytes > 0 }

    mutating func append(_ bytes: inout ByteBuffer) {
        if buffer.readableBytes == 0 {
            buffer = bytes
        } else {
            buffer.writeBuffer(&bytes)
        }
    }

    /// The next answer; nil until all of it has come.
    mutating func next() throws(HTTPAnswerError) -> HTTPAnswer? {
        while true {
            if head == nil {
                guard let read = try readHead() else { return nil }
                // 100 Continue and its kind stand before the answer.
                if (100..<200).contains(read.status) { continue }
                head = read
            }
            guard let head, let body = try readBody(head) else { return nil }
            self.head = nil
            return HTTPAnswer(
                status: head.status, body: body, retryAfterSeconds: head.retryAfterSeconds, budget: head.budget,
                closes: head.closes)
        }
    }

    private mutating func readHead() throws(HTTPAnswerError) -> Head? {
        guard let length = Self.headLength(buffer.readableBytesView) else {
            guard buffer.readableBytes <= Self.headBytesMax else {
                throw HTTPAnswerError(problem: "a head without an end")
            }
            return nil
        }
        guard let text = buffer.readSlice(length: length) else { return nil }
        var lines = text.readableBytesView.split(separator: UInt8(ascii: "\n")).makeIterator()
        guard let first = lines.next(), first.starts(with: "HTTP/1.1 ".utf8), first.count >= 12,
            let status = Int(String(decoding: first.dropFirst(9).prefix(3), as: UTF8.self)), status >= 100
        else { throw HTTPAnswerError(problem: "no status line of HTTP/1.1") }
        var head = Head(status: status)
        while let line = lines.next() { try Self.take(line, into: &head) }
        if status == 204 || status == 304 || (100..<200).contains(status) { head.bodyBytes = 0 }
        guard head.isChunked || head.bodyBytes != nil else {
            throw HTTPAnswerError(problem: "an answer without a length")
        }
        return head
    }

    /// The bytes up to and with the empty line; nil where it is not there yet.
    private static func headLength(_ bytes: ByteBufferView) -> Int? {
        bytes.withUnsafeBytes { bytes in
            var at = 3
            while at < bytes.count {
                if bytes[at] == 10 {
                    if bytes[at - 1] == 13, bytes[at - 2] == 10, bytes[at - 3] == 13 { return at + 1 }
                    at += 1
                } else {
                    // A carriage return may be the third of the four; after any other byte the end is four away at least.
                    at += bytes[at] == 13 ? 1 : 4
                }
            }
            return nil
        }
    }

    private static func take(_ line: ByteBufferView.SubSequence, into head: inout Head) throws(HTTPAnswerError) {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return }
        var value = line[(colon + 1)...].drop { $0 == UInt8(ascii: " ") || $0 == 9 }
        while let last = value.last, last == 13 || last == UInt8(ascii: " ") { value = value.dropLast() }
        let name = line[..<colon]
        func isNamed(_ expected: StaticString) -> Bool {
            guard name.count == expected.utf8CodeUnitCount else { return false }
            return expected.withUTF8Buffer { zip(name, $0).allSatisfy { $0 | 0x20 == $1 } }
        }
        if isNamed("content-length") {
            guard let count = Int(String(decoding: value, as: UTF8.self)), (0...bodyBytesMax).contains(count) else {
                throw HTTPAnswerError(problem: "a Content-Length that is none")
            }
            head.bodyBytes = count
        } else if isNamed("transfer-encoding") {
            head.isChunked = String(decoding: value, as: UTF8.self).lowercased().hasSuffix("chunked")
        } else if isNamed("connection") {
            head.closes = String(decoding: value, as: UTF8.self).lowercased() == "close"
        } else if isNamed("retry-after") {
            head.retryAfterSeconds = Double(String(decoding: value, as: UTF8.self))
        } else if isNamed("ratelimit") || isNamed("ratelimit-policy") {
            var budget = head.budget ?? RateBudget()
            budget.take(value)
            head.budget = budget
        }
    }

    private mutating func readBody(_ head: Head) throws(HTTPAnswerError) -> ByteBuffer? {
        guard head.isChunked else { return buffer.readSlice(length: head.bodyBytes ?? 0) }
        while let line = Self.line(buffer.readableBytesView) {
            let digits = line.prefix { $0 != UInt8(ascii: ";") && $0 != 13 && $0 != UInt8(ascii: " ") }
            guard let size = Int(String(decoding: digits, as: UTF8.self), radix: 16), size >= 0,
                size <= Self.bodyBytesMax - chunks.readableBytes
            else { throw HTTPAnswerError(problem: "a chunk without a size") }
            // The size, its line feed, the chunk, and CR LF; the last chunk has no bytes, and nodes send no trailers.
            guard buffer.readableBytes >= line.count + 1 + size + 2 else { return nil }
            buffer.moveReaderIndex(forwardBy: line.count + 1)
            if var chunk = buffer.readSlice(length: size) { chunks.writeBuffer(&chunk) }
            guard buffer.readBytes(length: 2) == [13, 10] else {
                throw HTTPAnswerError(problem: "a chunk without an end")
            }
            if size == 0 {
                defer { chunks = ByteBuffer() }
                return chunks
            }
        }
        guard buffer.readableBytes < 1_024 else { throw HTTPAnswerError(problem: "a chunk without a size") }
        return nil
    }

    /// The bytes before the first line feed; nil where there is none yet.
    private static func line(_ bytes: ByteBufferView) -> ByteBufferView.SubSequence? {
        bytes.firstIndex(of: 10).map { bytes[..<$0] }
    }
}
