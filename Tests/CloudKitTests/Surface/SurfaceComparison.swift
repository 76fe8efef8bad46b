import Foundation

/// The list of members held against what the modules have.
struct SurfaceComparison {
    enum Finding: Equatable {
        /// Present with the same declaration.
        case same
        /// Something of the name is there, declared otherwise.
        case differs(String)
        case missing
    }

    let rows: [(member: SurfaceList.Member, finding: Finding)]

    init(_ members: [SurfaceList.Member], in graph: SymbolGraph) {
        rows = members.map { ($0, Self.finding($0, in: graph)) }
    }

    private static func finding(_ member: SurfaceList.Member, in graph: SymbolGraph) -> Finding {
        if ["class", "struct", "enum", "protocol"].contains(member.declaration) {
            guard let kind = graph.kind(of: member.owner) else { return .missing }
            return kind == member.declaration ? .same : .differs(kind)
        }
        let isAlias = member.declaration.hasPrefix("typealias")
        let form = DeclarationForm(member.declaration, aliases: isAlias ? TypeAliases() : graph.aliases)
        let candidates = graph.members(of: member.owner).filter { $0.name == form.name }
        if candidates.contains(where: { graph.form(of: $0) == form }) { return .same }
        let near = candidates.map(\.declaration)
        return near.isEmpty ? .missing : .differs(near.joined(separator: "; "))
    }

    /// Those that are not as they should be.
    var faults: [String] {
        rows.compactMap { row in
            let name =
                row.member.owner.isEmpty ? row.member.declaration : "\(row.member.owner): \(row.member.declaration)"
            switch row.finding {
            case .same: return nil
            case .missing where row.member.mark == "L": return nil
            case .missing: return "missing: \(name)"
            case .differs(let found): return "differs: \(name), found \(found)"
            }
        }
    }

    /// The table as a document.
    var document: String {
        let present = rows.filter { $0.finding == .same }.count
        var lines = [
            "# The surface of the SDK", "",
            "Made by `scripts/sdk-surface` from the compiler's symbol graphs of the modules; do not edit. Each member that programs use, as",
            "Apple's documentation declares it: **M**, nearly every program needs it; **S**, shipped programs commonly do;",
            "**L**, few do.",
            "",
            "\(present) of \(rows.count) members are present with the same declaration.",
        ]
        var owner: String?
        for row in rows {
            if row.member.owner != owner {
                owner = row.member.owner
                lines += [
                    "", "## \(row.member.owner.isEmpty ? "The module" : row.member.owner)", "",
                    "| | member | present |", "|---|---|---|",
                ]
            }
            let finding =
                switch row.finding {
                case .same: "yes"
                case .missing: "**no**"
                case .differs(let found): "**otherwise**: `\(Self.cell(found))`"
                }
            lines.append("| \(row.member.mark) | `\(Self.cell(row.member.declaration))` | \(finding) |")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func cell(_ text: String) -> String { text.replacing("|", with: "\\|") }
}
