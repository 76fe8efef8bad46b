import RecordModel
import Service

/// Takes the one file out of a body of `multipart/form-data` (RFC 7578) while that arrives. Pure; between two steps it
/// holds no more than a part's head or the beginning of a boundary.
struct MultipartReader {
    private enum Phase {
        case preamble
        /// Behind a boundary.
        case boundary
        case head
        case file
        /// A part that is no file.
        case other
        /// Behind the last boundary.
        case epilogue
    }

    /// Bytes that a body may have beside its file.
    static let overheadBytesMax = 65_536
    private static let headBytesMax = 8_192

    private let delimiter: [UInt8]
    private var phase = Phase.preamble
    private var hasFile = false
    private var overhead = 0
    /// Bytes of a part's head in which its end was looked for.
    private var searched = 0
    // The first boundary needs no line before it.
    private var held: [UInt8] = [0x0D, 0x0A]

    /// - Parameter contentType: the header; nil is returned where it is not that of such a body.
    /// - Throws: where the header has no boundary.
    init?(contentType: String?) throws(RequestFailure) {
        guard let contentType, contentType.lowercased().hasPrefix("multipart/form-data") else { return nil }
        guard let boundary = Self.parameter("boundary", of: contentType), (1...70).contains(boundary.utf8.count) else {
            throw .badRequest("Content-Type: multipart/form-data needs a boundary of 1 to 70 characters")
        }
        delimiter = Array("\r\n--\(boundary)".utf8)
    }

    /// The file's bytes among those that came.
    mutating func take(_ bytes: some Collection<UInt8>) throws(RequestFailure) -> [UInt8] {
        held += bytes
        var file: [UInt8] = []
        while try step(&file) {}
        return file
    }

    /// The body has ended.
    func finish() throws(RequestFailure) {
        guard case .epilogue = phase else { throw .badRequest("the body ends before its last boundary") }
        guard hasFile else { throw .badRequest("the body has no file: a part named 'files', or one with a filename") }
    }

    /// - Returns: whether there is more to do with what is held.
    private mutating func step(_ file: inout [UInt8]) throws(RequestFailure) -> Bool {
        switch phase {
        case .preamble, .other:
            let (count, isFound) = beforeDelimiter()
            try drop(count)
            return try passDelimiter(isFound)
        case .file:
            let (count, isFound) = beforeDelimiter()
            file += held[..<count]
            held.removeFirst(count)
            return try passDelimiter(isFound)
        case .boundary: return try passBoundary()
        case .head: return try passHead()
        case .epilogue:
            try drop(held.count)
            return false
        }
    }

    private mutating func passDelimiter(_ isFound: Bool) throws(RequestFailure) -> Bool {
        guard isFound else { return false }
        try drop(delimiter.count)
        phase = .boundary
        return true
    }

    /// How many bytes come before the next boundary, or before what may be the beginning of one; and whether it is one.
    private func beforeDelimiter() -> (count: Int, isFound: Bool) {
        held.withUnsafeBufferPointer { bytes in
            var start = 0
            while start < bytes.count {
                if bytes[start] == delimiter[0] {
                    var length = 1
                    while length < delimiter.count, start + length < bytes.count,
                        bytes[start + length] == delimiter[length]
                    { length += 1 }
                    if length == delimiter.count { return (start, true) }
                    if start + length == bytes.count { return (start, false) }
                }
                start += 1
            }
            return (start, false)
        }
    }

    /// `--` ends the body; otherwise the line ends, and a part's head begins.
    private mutating func passBoundary() throws(RequestFailure) -> Bool {
        guard held.count >= 2 else { return false }
        if held[0] == UInt8(ascii: "-"), held[1] == UInt8(ascii: "-") {
            phase = .epilogue
            return true
        }
        try drop(held.prefix { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }.count)
        guard held.count >= 2 else { return false }
        guard held[0] == 0x0D, held[1] == 0x0A else { throw .badRequest("a boundary is not the whole of its line") }
        // The line's end stays: a head without fields is an empty line.
        phase = .head
        return true
    }

    private mutating func passHead() throws(RequestFailure) -> Bool {
        let end: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A]
        let unknown = max(searched - end.count + 1, 0)..<held.count
        guard let start = unknown.first(where: { held[$0...].starts(with: end) }) else {
            searched = held.count
            if held.count > Self.headBytesMax {
                throw .badRequest("a part's head has more than \(Self.headBytesMax) bytes")
            }
            return false
        }
        searched = 0
        let lines = String(decoding: held[..<start], as: UTF8.self).split(separator: "\r\n")
        try drop(start + end.count)
        let disposition = String(lines.first { $0.lowercased().hasPrefix("content-disposition:") } ?? "")
        let isFile =
            Self.parameter("name", of: disposition) == "files"
            || ["filename", "filename*"].contains { Self.parameter($0, of: disposition) != nil }
        if isFile, hasFile { throw .badRequest("the body has more than one file; each has an upload URL of its own") }
        hasFile = hasFile || isFile
        phase = isFile ? .file : .other
        return true
    }

    private mutating func drop(_ count: Int) throws(RequestFailure) {
        overhead += count
        held.removeFirst(count)
        guard overhead <= Self.overheadBytesMax else {
            throw .badRequest("the body has more than \(Self.overheadBytesMax) bytes beside its file")
        }
    }

    /// A parameter of a header, in quotes or without.
    static func parameter(_ name: String, of header: String) -> String? {
        for part in header.split(separator: ";").dropFirst() {
            let sides = part.split(separator: "=", maxSplits: 1)
            guard sides.count == 2 else { continue }
            let key = sides[0].drop { $0 == " " || $0 == "\t" }
            guard key.lowercased() == name else { continue }
            var value = sides[1]
            while value.last == " " { value.removeLast() }
            if value.count >= 2, value.first == "\"", value.last == "\"" { value = value.dropFirst().dropLast() }
            return String(value)
        }
        return nil
    }
}
