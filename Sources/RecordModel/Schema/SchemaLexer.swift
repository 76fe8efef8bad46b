/// One word of a schema's text, and where it begins.
struct SchemaToken: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        /// A keyword or a bare name, as written.
        case word(String)
        /// A name that stood in quotation marks, without them.
        case quoted(String)
        /// One of `( ) , ; < >`.
        case symbol(Character)
        case end
    }

    var kind: Kind
    var line: Int
    var column: Int

    /// The token as an error message shows it.
    var shown: String {
        switch kind {
        case .word(let text): "'\(text.prefix(60))'"
        case .quoted(let text): "\"\(text.prefix(60))\""
        case .symbol(let symbol): "'\(symbol)'"
        case .end: "the end of the text"
        }
    }

    func error(_ message: String) -> SchemaError { SchemaError(line: line, column: column, message: message) }
}

/// Cuts a schema's text into tokens, stepping over white space and the three forms of comment.
struct SchemaLexer {
    private let bytes: [UInt8]
    private var position = 0
    private var line = 1
    private var column = 1

    init(_ text: String) {
        bytes = Array(text.utf8)
        // A byte order mark, which some editors put first, is not part of the text.
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
    }

    /// The next token; after the last one `end`, as often as asked.
    mutating func next() throws(SchemaError) -> SchemaToken {
        try skipBlanks()
        let line = line
        let column = column
        func token(_ kind: SchemaToken.Kind) -> SchemaToken { SchemaToken(kind: kind, line: line, column: column) }
        guard let byte = peek() else { return token(.end) }
        switch byte {
        case UInt8(ascii: "("), UInt8(ascii: ")"), UInt8(ascii: ","), UInt8(ascii: ";"), UInt8(ascii: "<"),
            UInt8(ascii: ">"):
            advance()
            return token(.symbol(Character(UnicodeScalar(byte))))
        case UInt8(ascii: "\""):
            return token(.quoted(try quotedName(line: line, column: column)))
        case _ where Self.isWordByte(byte):
            let start = position
            while let byte = peek(), Self.isWordByte(byte) { advance() }
            return token(.word(String(decoding: bytes[start..<position], as: UTF8.self)))
        default:
            throw SchemaError(
                line: line, column: column,
                message: "\(shownScalar()) has no meaning here; names have letters, digits and underscores, any other "
                    + "text belongs in a comment")
        }
    }

    /// ASCII letters, digits and the underscore.
    static func isWordByte(_ byte: UInt8) -> Bool { byte.isASCIILetterOrDigit || byte == UInt8(ascii: "_") }

    private func peek(_ offset: Int = 0) -> UInt8? {
        position + offset < bytes.count ? bytes[position + offset] : nil
    }

    private mutating func advance() {
        let byte = bytes[position]
        position += 1
        // A carriage return ends a line too, unless the line feed that does comes next.
        if byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") && peek() != UInt8(ascii: "\n") {
            line += 1
            column = 1
        } else if peek().map({ $0 & 0xC0 != 0x80 }) ?? true {
            // Only the last byte of a scalar moves the column.
            column += 1
        }
    }

    private mutating func skipBlanks() throws(SchemaError) {
        while let byte = peek() {
            switch (byte, peek(1)) {
            case (UInt8(ascii: " "), _), (UInt8(ascii: "\t"), _), (UInt8(ascii: "\r"), _), (UInt8(ascii: "\n"), _):
                advance()
            case (UInt8(ascii: "/"), UInt8(ascii: "/")), (UInt8(ascii: "-"), UInt8(ascii: "-")):
                while let byte = peek(), byte != UInt8(ascii: "\n"), byte != UInt8(ascii: "\r") { advance() }
            case (UInt8(ascii: "/"), UInt8(ascii: "*")):
                try skipBlockComment()
            default:
                return
            }
        }
    }

    private mutating func skipBlockComment() throws(SchemaError) {
        let start = SchemaError(line: line, column: column, message: "this comment has no end; add */")
        advance()
        advance()
        while let byte = peek() {
            advance()
            if byte == UInt8(ascii: "*"), peek() == UInt8(ascii: "/") {
                advance()
                return
            }
        }
        throw start
    }

    private mutating func quotedName(line: Int, column: Int) throws(SchemaError) -> String {
        advance()
        let start = position
        while let byte = peek(), byte != UInt8(ascii: "\n"), byte != UInt8(ascii: "\r") {
            if byte == UInt8(ascii: "\"") {
                defer { advance() }
                return String(decoding: bytes[start..<position], as: UTF8.self)
            }
            if byte == UInt8(ascii: "\\") {
                throw SchemaError(
                    line: self.line, column: self.column,
                    message: "a quoted name cannot hold a backslash; there are no escapes")
            }
            advance()
        }
        throw SchemaError(line: line, column: column, message: "this name's closing quotation mark is missing")
    }

    private func shownScalar() -> String {
        let text = String(decoding: bytes[position..<min(position + 4, bytes.count)], as: UTF8.self)
        guard let scalar = text.unicodeScalars.first, scalar.value >= 0x20, scalar.value != 0x7F else {
            return "the control character \(bytes[position])"
        }
        return "'\(scalar)'"
    }
}
