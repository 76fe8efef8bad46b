/// Swift source taken apart as far as measuring it needs: what is code, what is text, what is a comment.
struct SourceText {
    /// What a byte belongs to.
    enum Kind: UInt8 { case code, string, comment }

    /// Lines without their ends.
    let lines: [Substring]
    /// The same lines with spaces in the place of strings and comments, in UTF-8.
    let code: [[UInt8]]
    /// For each line, whether its byte at a place is part of a comment.
    private let kinds: [[Kind]]

    init(_ text: String) {
        var lexer = Lexer(Array(text.utf8))
        lexer.run()
        lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        var code: [[UInt8]] = [[]]
        var kinds: [[Kind]] = [[]]
        for (byte, kind) in zip(lexer.bytes, lexer.kinds) {
            if byte == UInt8(ascii: "\n") {
                code.append([])
                kinds.append([])
            } else {
                code[code.count - 1].append(kind == .code ? byte : UInt8(ascii: " "))
                kinds[kinds.count - 1].append(kind)
            }
        }
        self.code = code
        self.kinds = kinds
    }

    /// A line of code as text.
    func codeText(_ line: Int) -> String { String(decoding: code[line], as: UTF8.self) }

    /// Whether a line ends in a comment.
    func endsInComment(_ line: Int) -> Bool { kinds[line].last == .comment }
}

/// Tells code, strings and comments apart.
private struct Lexer {
    let bytes: [UInt8]
    var kinds: [SourceText.Kind]
    private var place = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        kinds = Array(repeating: .code, count: bytes.count)
    }

    private func byte(_ offset: Int = 0) -> UInt8 { place + offset < bytes.count ? bytes[place + offset] : 0 }

    private func isAt(_ text: StaticString, _ offset: Int = 0) -> Bool {
        for index in 0..<text.utf8CodeUnitCount where byte(offset + index) != text.utf8Start[index] { return false }
        return true
    }

    private mutating func take(_ count: Int, _ kind: SourceText.Kind) {
        for index in place..<min(place + count, bytes.count) { kinds[index] = kind }
        place += count
    }

    mutating func run() { while place < bytes.count { takeCode() } }

    /// Takes a comment, a string, or one byte of code.
    private mutating func takeCode() {
        var hashes = 0
        while byte(hashes) == UInt8(ascii: "#") { hashes += 1 }
        if isAt("//") {
            while place < bytes.count, byte() != UInt8(ascii: "\n") { take(1, .comment) }
        } else if isAt("/*") {
            takeBlockComment()
        } else if byte(hashes) == UInt8(ascii: "\"") {
            takeString(hashes)
        } else if beginsRegex() {
            take(1, .string)
            while place < bytes.count, byte() != UInt8(ascii: "/") {
                take(byte() == UInt8(ascii: "\\") ? 2 : 1, .string)
            }
            take(1, .string)
        } else {
            place += max(hashes, 1)
        }
    }

    private mutating func takeBlockComment() {
        var depth = 0
        repeat {
            if isAt("/*") {
                depth += 1
                take(2, .comment)
            } else if isAt("*/") {
                depth -= 1
                take(2, .comment)
            } else {
                take(1, .comment)
            }
        } while depth > 0 && place < bytes.count
    }

    private mutating func takeString(_ hashes: Int) {
        let quotes = isAt("\"\"\"", hashes) ? 3 : 1
        take(hashes + quotes, .string)
        func counts(_ mark: UInt8, _ count: Int, from offset: Int) -> Bool {
            (0..<count).allSatisfy { byte(offset + $0) == mark }
        }
        while place < bytes.count {
            if counts(UInt8(ascii: "\""), quotes, from: 0), counts(UInt8(ascii: "#"), hashes, from: quotes) {
                return take(quotes + hashes, .string)
            }
            guard byte() == UInt8(ascii: "\\"), counts(UInt8(ascii: "#"), hashes, from: 1) else {
                take(1, .string)
                continue
            }
            take(1 + hashes, .string)
            if byte() == UInt8(ascii: "(") { takeInterpolation() } else { take(1, .string) }
        }
    }

    /// Code within a string counts as its text.
    private mutating func takeInterpolation() {
        let start = place
        var depth = 0
        repeat {
            if byte() == UInt8(ascii: "(") { depth += 1 }
            if byte() == UInt8(ascii: ")") { depth -= 1 }
            takeCode()
        } while depth > 0 && place < bytes.count
        for index in start..<min(place, bytes.count) { kinds[index] = .string }
    }

    /// A slash where a value begins, and no space after it.
    private func beginsRegex() -> Bool {
        guard byte() == UInt8(ascii: "/"), ![UInt8(ascii: " "), UInt8(ascii: ")"), 0x0A].contains(byte(1)) else {
            return false
        }
        let before = bytes[..<place].last { $0 != UInt8(ascii: " ") } ?? 0
        return [UInt8(ascii: "("), UInt8(ascii: ","), UInt8(ascii: "=")].contains(before)
    }
}
