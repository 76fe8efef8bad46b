import Testing

@Suite("Comments and documents")
struct CommentTests {
    @Test("no comment in Swift passes column 120")
    func commentColumns() throws {
        let wide = Repository.swift.map { file, source in
            let lines = source.lines.indices.filter {
                source.lines[$0].utf8.count > 120 && source.lines[$0].count > 120 && source.endsInComment($0)
            }
            return (file, lines.count)
        }
        try Exceptions(name: "comments", bound: 0, advice: "break the comment's lines before column 120")
            .check(Dictionary(uniqueKeysWithValues: wide))
    }

    @Test("no line of a document passes column 120, but rows of tables")
    func documentColumns() throws {
        let folders = ["Sources", "Tests", "Benchmarks", "docs"]
        let roots = ["README.md", "CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
        let documents = try roots + Repository.files(".md", in: folders)
        let wide = try documents.map { document in
            let lines = try Repository.text(document).split(separator: "\n")
            return (document, lines.count { $0.utf8.count > 120 && $0.count > 120 && !$0.hasPrefix("|") })
        }
        try Exceptions(name: "documents", bound: 0, advice: "break the lines before column 120")
            .check(Dictionary(uniqueKeysWithValues: wide))
    }

    @Test("every package and public declaration says what it is")
    func documentation() throws {
        var missing: [String: Int] = [:]
        for (file, source) in Repository.swift where file.hasPrefix("Sources/") {
            let count = source.lines.indices.count {
                let line = source.codeText($0)
                return Self.isShared(line) && !Self.isDocumented($0, source)
                    && !Self.wireRequirements.contains(where: line.contains)
            }
            missing[Repository.target(of: file), default: 0] += count
        }
        try Exceptions(
            name: "documentation", bound: 0,
            advice: "write a doc comment (///) above each package or public declaration that is new there"
        ).check(missing)
    }

    @Test("declarations and their comments are found")
    func measure() {
        let source = SourceText(
            """
            /// One.
            @frozen
            package struct One {
                public init() {}
                package init(_ one: Int) {}
                package init?(one: Int) {}
                package import Two
                // No documentation.
                package static let three = "public let four"
                /** Four. */
                public private(set) var four = 4
                package extension One {}
                private func five() {}  // wide
                /// Six.
                @Bytewise package var six: String
                @Bytewise package var seven: String
            }
            """)
        let shared = source.lines.indices.filter { Self.isShared(source.codeText($0)) }
        #expect(shared == [2, 3, 5, 8, 10, 14, 15])
        #expect(shared.filter { !Self.isDocumented($0, source) } == [3, 5, 8, 15])
        #expect(source.lines.indices.filter(source.endsInComment) == [0, 7, 9, 12, 13])
    }

    private static let keywords: Set<Substring> = [
        "func", "init", "subscript", "var", "let", "struct", "class", "enum", "actor", "protocol", "typealias",
    ]

    /// What the protocols of `Wire` say of every message.
    private static let wireRequirements = [
        "func encode(to writer: inout WireWriter)", "init(from reader: inout WireReader)",
        "init(field reader: inout WireReader)", "init?(_ number: Int, from reader: inout WireReader)",
        "func write(_ number: Int, to writer: inout WireWriter)", "static var blank: Self",
        "mutating func fields(_ wire: inout WireFields)", "mutating func check()", "func check() throws(WireError)",
        "static var absent: Self?", "static var known: Self",
        "static func write(_ list: [Self], _ number: Int, to writer: inout WireWriter)",
        "static func read(into list: inout [Self], _ reader: inout WireReader)",
        "mutating func read(_ reader: inout WireReader)",
    ]

    /// Whether a line of code declares something for other targets.
    private static func isShared(_ line: String) -> Bool {
        let words = line.split { !($0.isLetter || "_@.".contains($0)) }
        guard let access = words.firstIndex(where: { $0 == "package" || $0 == "public" || $0 == "open" }),
            words[..<access].allSatisfy({ $0.hasPrefix("@") || $0 == "final" || $0 == "static" || $0 == "nonisolated" })
        else { return false }
        let rest = words[(access + 1)...].first { keywords.contains($0) || $0 == "import" || $0 == "extension" }
        // The parameters of an initializer are named as the properties, which are documented.
        if rest == "init", words[access] == "package", !line.contains("init?") { return false }
        return rest.map(keywords.contains) ?? false
    }

    /// Whether a comment ends above a line and its attributes.
    private static func isDocumented(_ line: Int, _ source: SourceText) -> Bool {
        var above = line - 1
        func isAttribute(_ code: String) -> Bool {
            code.drop { $0 == " " }.hasPrefix("@") && !code.split(separator: " ").contains(where: keywords.contains)
        }
        while above >= 0, isAttribute(source.codeText(above)) { above -= 1 }
        guard above >= 0 else { return false }
        let text = source.lines[above].drop { $0 == " " }
        return text.hasPrefix("///") || (text.hasSuffix("*/") && source.endsInComment(above))
    }
}
