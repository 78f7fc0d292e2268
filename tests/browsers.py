"""Headless Chromium for tests of pages."""

from __future__ import annotations

import json
import shutil

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")


class Browser:
    """Headless Chromium with a few words of our own."""

    def __init__(self):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(DRIVER))
        self.driver.set_script_timeout(60)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def command(self, name, **parameters):
        return self.driver.execute_cdp_cmd(name, parameters)

    def resize(self, width, height=900):
        self._resize(width, height)
        self.settle()

    def _resize(self, width, height=900):
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def prefer(self, scheme):
        self._prefer(scheme)
        self.settle()

    def _prefer(self, scheme):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.command("Emulation.setEmulatedMedia", features=features)

    def open(self, path):
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)
        # The page that is left need not draw itself anew.
        self._resize(1280)
        self._prefer("light")
        self.driver.get(path.as_uri())
        drawn = """
            const done = arguments[0];
            const drawn = () => {
                const page = document.documentElement;
                return page.className === "scripted" || page.dataset.drawn;
            };
            const ask = () => drawn() ? done() : setTimeout(ask, 20);
            ask();
        """
        self.driver.execute_async_script(drawn)
        self.settle()

    def settle(self):
        """Wait until what was asked for has been drawn."""
        wait = "const done = arguments[0]; requestAnimationFrame(() => setTimeout(done, 60));"
        self.driver.execute_async_script(wait)

    def choose(self, signal, value):
        self.run(
            """const select = document.querySelector(`main select[data-signal="${arguments[0]}"]`)
                 ?? document.querySelector(`select[data-signal="${arguments[0]}"]`);
               select.value = arguments[1]; select.dispatchEvent(new Event("change"));""",
            signal,
            str(value),
        )
        self.settle()

    def press(self, key):
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(key).perform()

    def complaints(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
