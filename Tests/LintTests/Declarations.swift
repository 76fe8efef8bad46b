/// Declarations of a file, found by their keywords and braces.
struct Declarations {
    /// A function, an initializer or a subscript with a body.
    struct Function {
        var name: String
        /// From the first line of the signature to the end of the body, counted from 0.
        var lines: ClosedRange<Int>
    }

    /// A type or an extension of one.
    struct TypePart {
        /// The type's name with those around it.
        var name: String
        /// Lines, without those of types within it.
        var lineCount: Int
    }

    private(set) var functions: [Function] = []
    private(set) var types: [TypePart] = []
    /// Whether every brace found its other one; otherwise the figures mean nothing.
    var isBalanced: Bool { scopes.isEmpty && depth == 0 }

    /// Something whose closing brace is looked for.
    private struct Scope {
        enum Kind { case type(String), function(String), other }
        var kind: Kind
        var start: Int
        /// Lines of types within.
        var innerLines = 0
    }

    /// What was declared, and whose opening brace comes next.
    private var pending: (kind: Scope.Kind, line: Int)?
    private var scopes: [Scope] = []
    /// Brackets and parentheses that are open since the last open brace.
    private var depth = 0
    /// The same around each open brace.
    private var depths: [Int] = []

    init(_ source: SourceText) {
        for number in source.code.indices {
            if depth == 0 { declare(source.codeText(number), number) }
            for byte in source.code[number] { take(byte, number) }
        }
    }

    private mutating func take(_ byte: UInt8, _ line: Int) {
        switch byte {
        case UInt8(ascii: "("), UInt8(ascii: "["): depth += 1
        case UInt8(ascii: ")"), UInt8(ascii: "]"): depth -= 1
        case UInt8(ascii: "{"):
            // A closure among the arguments of a signature is no body.
            if depth == 0, let (kind, start) = pending {
                scopes.append(Scope(kind: kind, start: start))
                pending = nil
            } else {
                scopes.append(Scope(kind: .other, start: line))
            }
            depths.append(depth)
            depth = 0
        case UInt8(ascii: "}"):
            depth = depths.popLast() ?? 0
            // A requirement of a protocol has no body.
            if depth == 0 { pending = nil }
            if let scope = scopes.popLast() { close(scope, line) }
        default: break
        }
    }

    private mutating func close(_ scope: Scope, _ line: Int) {
        let count = line - scope.start + 1
        switch scope.kind {
        case .function(let name): functions.append(Function(name: name, lines: scope.start...line))
        case .type(let name):
            let outer = scopes.compactMap { if case .type(let name) = $0.kind { name } else { nil } }
            types.append(TypePart(name: (outer + [name]).joined(separator: "."), lineCount: count - scope.innerLines))
        case .other: break
        }
        guard !scopes.isEmpty else { return }
        if case .type = scope.kind {
            scopes[scopes.count - 1].innerLines += count
        } else {
            scopes[scopes.count - 1].innerLines += scope.innerLines
        }
    }

    private static let modifiers: Set<Substring> = [
        "public", "package", "internal", "fileprivate", "private", "open", "static", "class", "final", "override",
        "mutating", "nonmutating", "nonisolated", "convenience", "required", "indirect", "borrowing", "consuming",
        "prefix", "postfix", "infix", "lazy", "weak", "unowned", "unsafe", "set",
    ]

    /// Notes what a line of code begins to declare.
    private mutating func declare(_ line: String, _ number: Int) {
        var words = line.split { !($0.isLetter || $0.isNumber || "_@.".contains($0)) }
        while let first = words.first, first.hasPrefix("@") || Self.modifiers.contains(first) {
            let isType = first == "class" && words.count > 1 && !Self.modifiers.contains(words[1])
            if isType, !["func", "var", "let", "subscript"].contains(words[1]) { break }
            words.removeFirst()
        }
        guard let keyword = words.first else { return }
        switch keyword {
        case "func": pending = (.function(words.count > 1 ? String(words[1]) : "operator"), number)
        case "init", "subscript": pending = (.function(String(keyword)), number)
        case "struct", "class", "enum", "actor", "extension", "protocol":
            if words.count > 1 { pending = (.type(String(words[1])), number) }
        case "var", "let", "case", "typealias", "associatedtype": pending = nil
        default: break
        }
    }
}
