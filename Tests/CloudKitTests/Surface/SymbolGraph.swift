import Foundation

/// What a module's symbol graph, as the compiler extracts it, says of its public names.
struct SymbolGraph {
    struct Symbol {
        /// The last part of its path, without parameters.
        var name: String
        var declaration: String
        var isAlias: Bool
    }

    private(set) var symbols: [Symbol] = []
    private(set) var aliases = TypeAliases()
    private var superclasses: [String: String] = [:]
    private var byOwner: [String: [Int]] = [:]
    private var kinds: [String: String] = [:]

    /// Reads every graph in a folder.
    init(folder: URL) throws {
        let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
            .filter { $0.lastPathComponent.hasSuffix(".symbols.json") }.sorted { $0.path < $1.path }
        let graphs = try files.map { try JSONDecoder().decode(File.self, from: Data(contentsOf: $0)) }
        self.init(graphs)
    }

    /// Reads one graph.
    init(json: Data) throws {
        self.init([try JSONDecoder().decode(File.self, from: json)])
    }

    private init(_ graphs: [File]) {
        var paths: [String: String] = [:]
        for symbol in graphs.flatMap(\.symbols) {
            paths[symbol.identifier.precise] = symbol.path
            if symbol.kind.identifier == "swift.typealias", let target = symbol.text.split(separator: "= ").last {
                aliases.add(symbol.path, for: String(target.replacing("any ", with: "")))
            }
        }
        for symbol in graphs.flatMap(\.symbols) {
            let owner = aliases.resolved(symbol.pathComponents.dropLast().joined(separator: "."))
            if !symbol.isAlias { kinds[symbol.path] = String(symbol.kind.identifier.dropFirst("swift.".count)) }
            byOwner[owner, default: []].append(symbols.count)
            let name = symbol.pathComponents.last?.prefix { $0 != "(" } ?? ""
            symbols.append(Symbol(name: String(name), declaration: symbol.text, isAlias: symbol.isAlias))
        }
        for relation in graphs.flatMap(\.relationships) where relation.kind == "inheritsFrom" {
            if let below = paths[relation.source], let above = paths[relation.target] { superclasses[below] = above }
        }
    }

    /// The kind of a type: `class`, `struct`, `enum` or `protocol`.
    func kind(of type: String) -> String? { kinds[aliases.resolved(type)] }

    /// A symbol's declaration, to be compared.
    func form(of symbol: Symbol) -> DeclarationForm {
        DeclarationForm(symbol.declaration, aliases: symbol.isAlias ? TypeAliases() : aliases)
    }

    /// What a type has, and what its superclasses do.
    func members(of type: String) -> [Symbol] {
        var members: [Symbol] = []
        var next: String? = aliases.resolved(type)
        while let current = next {
            members += byOwner[current, default: []].map { symbols[$0] }
            next = superclasses[current]
        }
        return members
    }
}

extension SymbolGraph {
    fileprivate struct File: Decodable {
        var symbols: [Entry]
        var relationships: [Relationship]
    }

    fileprivate struct Relationship: Decodable {
        var kind: String
        var source: String
        var target: String
    }

    fileprivate struct Entry: Decodable {
        struct Kind: Decodable { var identifier: String }
        struct Identifier: Decodable { var precise: String }
        struct Fragment: Decodable { var spelling: String }

        var kind: Kind
        var identifier: Identifier
        var pathComponents: [String]
        var declarationFragments: [Fragment]?

        var path: String { pathComponents.joined(separator: ".") }
        var text: String { (declarationFragments ?? []).map(\.spelling).joined() }
        var isAlias: Bool { kind.identifier == "swift.typealias" }
    }
}
