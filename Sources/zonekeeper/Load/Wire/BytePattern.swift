/// Bytes to look for in many texts. It looks at one byte in `count` or so (Horspool 1980).
struct BytePattern: Hashable, Sendable {
    private let bytes: [UInt8]
    /// For each byte, how far the pattern may move when that byte stands under its end.
    private let shifts: [Int]

    var count: Int { bytes.count }

    init(_ text: String) {
        precondition(!text.isEmpty, "an empty pattern is everywhere")
        bytes = Array(text.utf8)
        var shifts = [Int](repeating: bytes.count, count: 256)
        for (index, byte) in bytes.dropLast().enumerated() { shifts[Int(byte)] = bytes.count - 1 - index }
        self.shifts = shifts
    }

    /// Where the pattern begins for the first time; nil where it is not in the text.
    func firstMatch(in text: UnsafeRawBufferPointer) -> Int? {
        var end = bytes.count - 1
        while end < text.count {
            var back = 0
            while back < bytes.count, text[end - back] == bytes[bytes.count - 1 - back] { back += 1 }
            if back == bytes.count { return end - bytes.count + 1 }
            end += shifts[Int(text[end])]
        }
        return nil
    }
}
