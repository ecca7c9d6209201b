package report

import (
	"encoding/json"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// browser finds Chromium or Chrome: what BROWSER names, else what is in PATH.
func browser(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a browser several times")
	}
	for _, name := range []string{os.Getenv("BROWSER"), "chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium or Chrome here, so the page is not looked at; BROWSER can name one")
	return ""
}

// browse runs a headless browser and returns what it prints and what it logs.
func browse(t *testing.T, file string, arguments ...string) (out, log string) {
	t.Helper()
	arguments = append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
		"--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--user-data-dir=" + t.TempDir(), "--enable-logging=stderr", "--virtual-time-budget=2000",
	}, arguments...)
	cmd := exec.CommandContext(t.Context(), browser(t), append(arguments, "file://"+file)...)
	var printed, logged strings.Builder
	cmd.Stdout, cmd.Stderr = &printed, &logged
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, logged.String())
	}
	return printed.String(), logged.String()
}

// save writes a page to a file of its own.
func save(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestBrowserHasNoComplaints(t *testing.T) {
	_, log := browse(t, save(t, write(t, sample(t, "cache_aware", "round-robin"))), "--dump-dom")
	if found := regexp.MustCompile(`.*(CONSOLE|Refused|Content Security).*`).FindString(log); found != "" {
		t.Error(found)
	}
}

// measure is a script that notes what the browser made of the page.
const measure = `<script>
const box = e => { const b = e.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom] };
document.body.dataset.measured = JSON.stringify({
  width: document.documentElement.clientWidth,
  scroll: document.documentElement.scrollWidth,
  plots: [...document.querySelectorAll("svg.plot")].map(plot => ({
    box: box(plot),
    paths: [...plot.querySelectorAll("path")].map(p => ({
      length: p.getTotalLength(), box: box(p), stroke: getComputedStyle(p).stroke, fill: getComputedStyle(p).fill })),
    labels: [...plot.querySelectorAll("text")].map(box),
  })),
});
</script></body>`

type measured struct {
	Width, Scroll float64
	Plots         []struct {
		Box   [4]float64
		Paths []struct {
			Length       float64
			Box          [4]float64
			Stroke, Fill string
		}
		Labels [][4]float64
	}
}

// layOut lets a browser lay the page out in a window of that width.
func layOut(t *testing.T, text, size string) measured {
	t.Helper()
	// The page forbids scripts, so this one is let in first.
	text = regexp.MustCompile(`<meta http-equiv="Content-Security-Policy".*`).ReplaceAllString(text, "")
	text = strings.Replace(text, "</body>", measure, 1)
	dom, _ := browse(t, save(t, text), "--dump-dom", "--window-size="+size)
	found := regexp.MustCompile(`data-measured="([^"]*)"`).FindStringSubmatch(dom)
	if found == nil {
		t.Fatalf("the script has not run: %.500s", dom)
	}
	var m measured
	if err := json.Unmarshal([]byte(strings.ReplaceAll(found[1], "&quot;", `"`)), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestBrowserDrawsThePlots(t *testing.T) {
	text := write(t, sample(t, "cache_aware", "round-robin", "least-requests"))
	for _, size := range []string{"1280,900", "500,900"} {
		m := layOut(t, text, size)
		if m.Scroll > m.Width {
			t.Errorf("%s: the page is %v wide in a window of %v", size, m.Scroll, m.Width)
		}
		if len(m.Plots) != 5 {
			t.Fatalf("%s: %d plots, want 5", size, len(m.Plots))
		}
		for i, plot := range m.Plots {
			if plot.Box[2]-plot.Box[0] < 200 || plot.Box[3]-plot.Box[1] < 100 || len(plot.Labels) < 5 {
				t.Errorf("%s: plot %d takes up %v with %d labels", size, i, plot.Box, len(plot.Labels))
			}
			for k, path := range plot.Paths {
				drawn := path.Stroke != "none" || path.Fill != "none"
				if path.Length < 50 || !drawn || !inside(path.Box, plot.Box) {
					t.Errorf("%s: line %d of plot %d: %+v in %v", size, k, i, path, plot.Box)
				}
			}
			for k, label := range plot.Labels {
				if !inside(label, plot.Box) {
					t.Errorf("%s: label %d of plot %d is cut off: %v in %v", size, k, i, label, plot.Box)
				}
			}
		}
	}
}

func inside(inner, outer [4]float64) bool {
	return inner[0] >= outer[0]-1 && inner[1] >= outer[1]-1 && inner[2] <= outer[2]+1 && inner[3] <= outer[3]+1
}

// TestBrowserHasDarkAndLight looks at the pixels: the background differs, and each
// has the colors of the lines on it.
func TestBrowserHasDarkAndLight(t *testing.T) {
	file := save(t, write(t, sample(t, "cache_aware", "round-robin")))
	for _, c := range []struct {
		name, flag string
		background [3]uint8
		lines      [][3]uint8
	}{
		{"light", "--disable-dark-mode", [3]uint8{0xff, 0xff, 0xff}, [][3]uint8{{0x0b, 0x5c, 0xad}, {0xc2, 0x4a, 0x00}}},
		{"dark", "--force-dark-mode", [3]uint8{0x14, 0x17, 0x1a}, [][3]uint8{{0x6d, 0xb3, 0xff}, {0xff, 0x9d, 0x5c}}},
	} {
		shot := filepath.Join(t.TempDir(), c.name+".png")
		browse(t, file, c.flag, "--window-size=1100,1800", "--screenshot="+shot)
		counts := pixels(t, shot)
		if counts[c.background] < 500_000 {
			t.Errorf("%s: %d pixels of the background", c.name, counts[c.background])
		}
		for _, line := range c.lines {
			if counts[line] < 500 {
				t.Errorf("%s: %d pixels of the line %x", c.name, counts[line], line)
			}
		}
	}
}

// pixels counts the colors of a picture.
func pixels(t *testing.T, path string) map[[3]uint8]int {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	picture, err := png.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[[3]uint8]int{}
	size := picture.Bounds()
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			counts[rgb(picture, x, y)]++
		}
	}
	return counts
}

func rgb(picture image.Image, x, y int) [3]uint8 {
	r, g, b, _ := picture.At(x, y).RGBA()
	return [3]uint8{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8)}
}
