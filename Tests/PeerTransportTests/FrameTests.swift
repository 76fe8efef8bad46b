import NIOCore
import RaftCore
import Testing
import Wire

@testable import PeerTransport

@Suite("Frames")
struct FrameTests {
    /// Feeds bytes in chunks, as the network does.
    private func decode(_ bytes: [UInt8], chunk: (Int) -> Int, frameBytesMax: Int = 1 << 20) throws -> [Frame] {
        let processor = NIOSingleStepByteToMessageProcessor(FrameDecoder(frameBytesMax: frameBytesMax))
        var frames: [Frame] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = min(rest.count, max(1, chunk(rest.count)))
            try processor.process(buffer: ByteBuffer(bytes: rest.prefix(count))) { frames.append($0) }
            rest = rest.dropFirst(count)
        }
        return frames
    }

    @Test("frames come out as they went in, however the bytes are cut")
    func chunks() throws {
        var generator = SplitMix64(seed: 1)
        var buffer = OutboundBuffer(frameBytesMax: 1 << 20)
        var expected: [Frame] = []
        for size in [0, 1, 4, 5, 300, 16_379, 70_000] {
            let payload = (0..<size).map { _ in UInt8.random(in: 0...255, using: &generator) }
            let kind = FrameKind.allCases.randomElement(using: &generator) ?? .ping
            #expect(buffer.append(kind) { $0.bytes += payload } == .appended)
            expected.append(Frame(kind: kind, payload: payload))
        }
        #expect(buffer.frameCount == expected.count)
        let bytes = buffer.take()
        #expect(buffer.count == 0)
        #expect(try decode(bytes, chunk: { _ in 1 }) == expected)
        #expect(try decode(bytes, chunk: { $0 }) == expected)
        for _ in 0..<20 {
            #expect(try decode(bytes, chunk: { Int.random(in: 1...$0, using: &generator) }) == expected)
        }
    }

    @Test("random bytes never do worse than an error", arguments: 0..<200 as Range<UInt64>)
    func randomBytes(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let bytes = (0..<Int.random(in: 1...400, using: &generator)).map { _ in
            // Mostly small, so that lengths and kinds are often plausible.
            UInt8.random(in: 0...(Bool.random(using: &generator) ? 8 : 255), using: &generator)
        }
        let frames = (try? decode(bytes, chunk: { Int.random(in: 1...$0, using: &generator) })) ?? []
        for frame in frames {
            _ = try? Hello(decoding: frame.payload)
            _ = try? Goodbye(decoding: frame.payload)
            _ = try? ClockReading(decoding: frame.payload)
            _ = try? RequestFrame(decoding: frame.payload)
            _ = try? ResponseFrame(decoding: frame.payload)
            _ = try? RaftFrame.read(frame.payload)
        }
        _ = try? RaftFrame.read(bytes)
    }

    @Test("payloads that were damaged are read or refused, never trapped", arguments: 0..<100 as Range<UInt64>)
    func damaged(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        var writer = WireWriter()
        for number in 0..<5 { RaftFrame.write(message(UInt64(number), bytes: number == 3 ? 100 : 0), to: &writer) }
        let hello = Array(helloBytes().dropFirst(Frame.headerBytes))
        let request = RequestFrame(id: 300, payload: [1, 2, 3]).encoded()
        let response = ResponseFrame(id: 300, result: .failure(.refused("no"))).encoded()
        let clock = ClockReading(wallMilliseconds: -5, asked: .max).encoded()
        for var bytes in [writer.bytes, hello, request, response, clock] {
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                let position = Int.random(in: 0..<bytes.count, using: &generator)
                bytes[position] = UInt8.random(in: 0...255, using: &generator)
            }
            bytes.removeLast(Int.random(in: 0..<bytes.count, using: &generator))
            _ = try? RaftFrame.read(bytes)
            if let hello = try? Hello(decoding: bytes) { #expect(hello.build.version.utf8.count <= 3 * 128) }
            _ = try? ClockReading(decoding: bytes)
            _ = try? RequestFrame(decoding: bytes)
            _ = try? ResponseFrame(decoding: bytes)
        }
    }

    @Test("raft messages come out as they went in, and a cut frame is refused")
    func raft() throws {
        let messages = (0..<10).map { message(UInt64($0), bytes: 10 * $0) }
        var writer = WireWriter()
        for message in messages { RaftFrame.write(message, to: &writer) }
        #expect(try RaftFrame.read(writer.bytes) == messages)
        #expect(throws: WireError.truncated) { try RaftFrame.read(Array(writer.bytes.dropLast())) }
        #expect(try RaftFrame.read([]) == [])
    }

    @Test("raft messages in a row share a frame until it is full or another frame comes between")
    func gathering() throws {
        var buffer = OutboundBuffer(frameBytesMax: 1_000)
        for number in 0..<20 {
            #expect(buffer.append(message(UInt64(number), bytes: 100), roomBytes: .max) == .appended)
        }
        #expect(buffer.append(.ping) == .appended)
        for number in 20..<22 { #expect(buffer.append(message(UInt64(number)), roomBytes: .max) == .appended) }
        let frames = try decode(buffer.take(), chunk: { $0 }, frameBytesMax: 1_000)
        #expect(frames.map(\.kind) == [.raft, .raft, .raft, .ping, .raft])
        let messages = try frames.filter { $0.kind == .raft }.flatMap { try RaftFrame.read($0.payload) }
        #expect(
            messages.map(\.message.fingerprint)
                == (0..<22).map { message(UInt64($0), bytes: $0 < 20 ? 100 : 0).message.fingerprint })
    }

    @Test("the entries of an append have no more around the sum of their sizes than is allowed for")
    func appends() {
        let (index, term) = (LogIndex(.max), Term(.max))
        let members = Configuration(voters: (0..<40).map { ReplicaID(.max - $0) })
        let one = Entry(index: index, term: term, payload: .command([UInt8](repeating: 1, count: 300_000)))
        let many = [.empty, .command([1]), .configuration(members)].map { Entry(index: index, term: term, payload: $0) }
        for entries in [[one], [Entry](repeating: many[0], count: 999), many + many, [one] + many + [one]] {
            let request = AppendRequest(
                previous: LogPosition(index: index, term: term), entries: entries, commit: index)
            let message = PeerMessage(
                group: GroupID(.max),
                message: Message(
                    from: ReplicaID(.max), to: ReplicaID(.max), term: term, body: .appendRequest(request)))
            let bytesMax = entries.reduce(Entry.overheadBytesMax) { $0 + $1.sizeBytes }
            var buffer = OutboundBuffer(frameBytesMax: bytesMax)
            #expect(buffer.append(message, roomBytes: .max) == .appended)
        }
    }

    @Test("what does not fit leaves the buffer as it was")
    func limits() throws {
        var buffer = OutboundBuffer(frameBytesMax: 1_000)
        #expect(buffer.append(message(1, bytes: 100), roomBytes: 300) == .appended)
        let count = buffer.count
        #expect(buffer.append(message(2, bytes: 300), roomBytes: 300) == .full)
        #expect(buffer.append(.request, roomBytes: 300) { $0.bytes += [UInt8](repeating: 0, count: 300) } == .full)
        guard case .tooLarge = buffer.append(message(3, bytes: 1_000), roomBytes: .max) else {
            Issue.record("a message longer than a frame was taken")
            return
        }
        #expect(buffer.append(.request) { $0.bytes += [UInt8](repeating: 0, count: 996) } == .tooLarge(bytes: 1_001))
        #expect(buffer.count == count)
        #expect(buffer.append(message(4), roomBytes: 300) == .appended)
        let frames = try decode(buffer.take(), chunk: { $0 }, frameBytesMax: 1_000)
        #expect(try frames.map { try RaftFrame.read($0.payload) } == [[message(1, bytes: 100), message(4)]])
    }

    @Test("hello, goodbye, requests and responses come out as they went in, unknown fields passed over")
    func messages() throws {
        var hello = try Hello(decoding: helloBytes().dropFirst(Frame.headerBytes))
        #expect(
            hello.node == NodeID(2) && hello.clusterID == "test" && hello.channel == .raft && hello.incarnation == 7)
        #expect(hello.build == PeerPresence.test.build && hello.clock == ClockReading(wallMilliseconds: 1_000_000))
        hello.clusterID = "zürich"
        hello.clock = ClockReading(wallMilliseconds: .min, asked: .max)
        var writer = WireWriter()
        hello.encode(to: &writer)
        writer.field(99, "from the future")
        #expect(try Hello(decoding: writer.bytes) == hello)
        // A build from before feature levels says nothing of them; half a range is none.
        hello.build.levels = nil
        #expect(try Hello(decoding: hello.encoded()).build.levels == nil)
        writer = WireWriter()
        hello.encode(to: &writer)
        writer.field(9, 4)
        #expect(throws: WireError.missingField(10)) { try Hello(decoding: writer.bytes) }
        writer.field(10, 3)
        #expect(throws: WireError.invalidValue(field: 10)) { try Hello(decoding: writer.bytes) }

        let long = String(repeating: "x", count: 5_000)
        #expect(try Goodbye(decoding: Goodbye(long).encoded()).reason.utf8.count == Goodbye.reasonBytesMax)

        let request = RequestFrame(id: .max, payload: [])
        #expect(try RequestFrame(decoding: request.encoded()) == request)
        for result: Result<[UInt8], PeerTransportError> in [
            .success([]), .success([1]), .failure(.refused("why")), .failure(.responseLost("")),
            .failure(.responseTooLarge(bytes: 9, bytesMax: 8)),
        ] {
            let response = ResponseFrame(id: 1, result: result)
            #expect(try ResponseFrame(decoding: response.encoded()) == response)
        }
        #expect(throws: WireError.missingField(2)) { try ResponseFrame(decoding: [8, 1] as [UInt8]) }
    }
}

extension Message {
    fileprivate var fingerprint: [UInt8] { encoded() }
}
