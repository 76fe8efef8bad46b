import CloudKit

/// What the people's app keeps as a preference.
struct Preferences {
    private let store = NSUbiquitousKeyValueStore()

    func setFavoriteColor(_ color: String) {
        store.set(color, forKey: "favoriteColor")
        store.synchronize()
    }

    var favoriteColor: String? { store.string(forKey: "favoriteColor") }
}
