import Foundation

/// A declaration in a form in which two that mean the same to a caller are equal.
///
/// Dropped are attributes, access and the names of parameters inside a function; `class` members count as `static`,
/// stored properties as computed ones, `any` is implied, and a default value is only said to be there.
struct DeclarationForm: Hashable, CustomStringConvertible {
    let description: String

    /// What is declared: `save`, `init`, `subscript`.
    let name: String

    /// Reads a declaration; names of types are replaced by what the aliases say.
    init(_ declaration: String, aliases: TypeAliases = TypeAliases()) {
        var text = declaration.replacing(/@\w+(\([^)]*\))?/, with: "").replacing("`", with: "")
        text = text.replacing(
            /\b(public|open|final|override|convenience|required|nonisolated|package|any|mutating)\s+/, with: "")
        text = text.replacing(/\bclass\s+(?=func|var|let|subscript)/, with: "static ")
        text = text.replacing(/\b(Swift|Foundation)\./, with: "")
        text = Self.withoutSpaces(text)
        text = text.replacing(/\(([\w.]+)\)\?/) { "\($0.1)?" }
        text = Self.withPlainGenerics(text)
        text = Self.withPlainParameters(text)
        text = Self.withAccessors(text)
        description = aliases.resolved(text)
        let words = text.split(whereSeparator: { !($0.isLetter || $0.isNumber || $0 == "_") })
        name = words.first { !Self.keywords.contains(String($0)) }.map(String.init) ?? text
    }

    private static let keywords: Set<String> = ["static", "func", "var", "let", "case", "typealias"]

    /// One space between words, none elsewhere.
    private static func withoutSpaces(_ text: String) -> String {
        var out = ""
        for character in text.split(whereSeparator: \.isWhitespace).joined(separator: " ") {
            let isMark = !(character.isLetter || character.isNumber || character == "_" || character == " ")
            if isMark, out.last == " " { out.removeLast() }
            if character == " ", let last = out.last, !(last.isLetter || last.isNumber || last == "_") { continue }
            out.append(character)
        }
        return out.trimmingCharacters(in: .whitespaces).replacing("!{", with: "! {").replacing("! {", with: "!{")
    }

    /// The parameters with their labels and types only.
    private static func withPlainParameters(_ text: String) -> String {
        let isSubscript = isSubscript(text)
        guard text.contains("func ") || text.hasPrefix("init") || isSubscript,
            let open = text.firstIndex(of: "("), let close = closing(of: open, in: text)
        else { return text }
        let parameters = split(text[text.index(after: open)..<close], at: ",").map { parameter -> String in
            let parts = split(parameter, at: ":", once: true)
            guard parts.count == 2 else { return String(parameter) }
            let names = parts[0].split(separator: " ")
            let label = isSubscript && names.count == 1 ? "_" : names.first.map(String.init) ?? "_"
            let halves = split(parts[1], at: "=", once: true)
            return "\(label):\(halves[0])" + (halves.count == 2 ? "=_" : "")
        }
        return text[...open] + parameters.joined(separator: ",") + text[close...]
    }

    /// A variable with what can be done with it.
    private static func withAccessors(_ text: String) -> String {
        if text.contains(/\blet\s/) { return text.replacing(/\blet\s/, with: "var ") + "{get}" }
        guard text.contains(/\bvar\s/) || isSubscript(text) else { return text }
        return text.hasSuffix("}") ? text : text + "{get set}"
    }

    private static func isSubscript(_ text: String) -> Bool { text.contains(/\bsubscript[<(]/) }

    /// The generic parameters by their place rather than their names.
    private static func withPlainGenerics(_ text: String) -> String {
        guard let match = text.firstMatch(of: /^[^(]*?<([\w,]+)>\(/) else { return text }
        var text = text
        for (place, name) in match.1.split(separator: ",").enumerated() {
            guard let word = try? Regex("\\b\(name)\\b") else { continue }
            text = text.replacing(word, with: "$\(place)")
        }
        return text
    }

    private static func closing(of open: String.Index, in text: String) -> String.Index? {
        var depth = 0
        for index in text[open...].indices {
            if text[index] == "(" { depth += 1 }
            if text[index] == ")" {
                depth -= 1
                if depth == 0 { return index }
            }
        }
        return nil
    }

    /// Splits where no bracket is open. The `>` of an arrow closes nothing.
    private static func split(_ text: Substring, at separator: Character, once: Bool = false) -> [Substring] {
        var parts: [Substring] = []
        var start = text.startIndex
        var depth = 0
        var previous: Character = " "
        for index in text.indices {
            let character = text[index]
            if "([<".contains(character) { depth += 1 }
            if ")]".contains(character) || (character == ">" && previous != "-") { depth -= 1 }
            if character == separator, depth == 0, !(once && !parts.isEmpty) {
                parts.append(text[start..<index])
                start = text.index(after: index)
            }
            previous = character
        }
        let rest = text[start...]
        return rest.isEmpty && parts.isEmpty ? [] : parts + [rest]
    }
}

/// What nested and other names of types stand for.
struct TypeAliases {
    private var targets: [String: String] = ["Notification.Name": "NSNotification.Name"]

    /// Says that a name, with the types around it and dots between, stands for another.
    mutating func add(_ name: String, for target: String) {
        targets[name] = target
    }

    /// A text with every name replaced by what it stands for.
    func resolved(_ text: String) -> String {
        text.replacing(/[A-Za-z_][\w]*(\.[A-Za-z_]\w*)*/) { resolvedName(String($0.0)) }
    }

    private func resolvedName(_ name: String) -> String {
        var parts = name.split(separator: ".").map(String.init)
        var steps = 0
        var length = parts.count
        while length > 0, steps < 10 {
            if let target = targets[parts[..<length].joined(separator: ".")] {
                parts = target.split(separator: ".").map(String.init) + parts[length...]
                length = parts.count
                steps += 1
            } else {
                length -= 1
            }
        }
        return parts.joined(separator: ".")
    }
}
