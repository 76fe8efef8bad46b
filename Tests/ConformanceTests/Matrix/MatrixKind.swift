extension Matrix {
    /// A record type, with what it grants.
    struct Kind: Sendable {
        var name: String
        var grants: Grants

        /// Its part of a schema.
        func text(isOpen: Bool = false) -> String {
            let grants = isOpen ? ["_world": "crw"] : grants
            let clauses = Matrix.roles.compactMap { role -> String? in
                guard let letters = grants[role], !letters.isEmpty else { return nil }
                let words = letters.map { ["c": "CREATE", "r": "READ", "w": "WRITE"][$0] ?? "" }
                return "GRANT \(words.joined(separator: ", ")) TO \"\(role)\""
            }
            let fields = [
                #""___recordID" REFERENCE QUERYABLE SORTABLE"#, #""___createdBy" REFERENCE QUERYABLE"#,
                "secret STRING QUERYABLE SORTABLE SEARCHABLE", "word STRING QUERYABLE SORTABLE",
                "link REFERENCE QUERYABLE",
            ]
            return "RECORD TYPE \(name) (\((fields + clauses).joined(separator: ", ")));"
        }

        /// As in "_world:r _creator:cw".
        var label: String {
            let parts = Matrix.roles.compactMap { role in grants[role].map { "\(role):\($0)" } }
            return "\(name){\(parts.joined(separator: " "))}"
        }
    }

    /// The roles that grants are made to.
    static let roles = ["_world", "_icloud", "_creator", "Editor"]

    /// A type that everybody may do everything with.
    static let openKind = Kind(name: "Open", grants: ["_world": "crw"])

    /// Types that grant each subset of create, read and write to one role alone, then types that grant something to
    /// each role.
    /// - Parameter everywhere: what all of them grant to the world besides.
    static func kinds(alone roles: [String], mixed: Int, everywhere: String = "") -> [Kind] {
        let subsets = ["", "c", "r", "w", "cr", "cw", "rw", "crw"]
        var all: [Grants] = [[:]]
        for role in roles {
            for subset in subsets where !subset.isEmpty { all.append([role: subset]) }
        }
        var dice = Dice(seed: 5)
        for _ in 0..<mixed {
            var grants: Grants = [:]
            for role in Matrix.roles {
                let subset = subsets[dice.next(below: subsets.count)]
                if !subset.isEmpty { grants[role] = subset }
            }
            all.append(grants)
        }
        return all.enumerated().map { number, grants in
            var grants = grants
            let world = Set((grants["_world"] ?? "") + everywhere)
            if !world.isEmpty { grants["_world"] = String(world.sorted()) }
            return Kind(name: "Kind\(number)", grants: grants)
        }
    }

    /// A schema of types; `isOpen` grants everything to everybody instead.
    static func schema(_ kinds: [Kind], isOpen: Bool) -> String {
        let types = ([openKind] + kinds).map { $0.text(isOpen: isOpen) }
        return "DEFINE SCHEMA\nCREATE ROLE Editor;\nCREATE ROLE Idle;\n" + types.joined(separator: "\n")
    }
}
